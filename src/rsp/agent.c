/* gdb's agent expressions: bytecode for a machine with one stack of 64-bit numbers. */
#include "rsp/agent.h"

#define STACK_MAX 128
#define STEPS_MAX 100000 /* an expression may jump backwards */

enum op {
    OP_ADD = 0x02,
    OP_SUB,
    OP_MUL,
    OP_DIV_SIGNED,
    OP_DIV_UNSIGNED,
    OP_REM_SIGNED,
    OP_REM_UNSIGNED,
    OP_LSH,
    OP_RSH_SIGNED,
    OP_RSH_UNSIGNED,
    OP_LOG_NOT = 0x0e,
    OP_BIT_AND,
    OP_BIT_OR,
    OP_BIT_XOR,
    OP_BIT_NOT,
    OP_EQUAL,
    OP_LESS_SIGNED,
    OP_LESS_UNSIGNED,
    OP_EXT,
    OP_REF8,
    OP_REF16,
    OP_REF32,
    OP_REF64,
    OP_IF_GOTO = 0x20,
    OP_GOTO,
    OP_CONST8,
    OP_CONST16,
    OP_CONST32,
    OP_CONST64,
    OP_REG,
    OP_END,
    OP_DUP,
    OP_POP,
    OP_ZERO_EXT,
    OP_SWAP,
    OP_PICK = 0x32,
    OP_ROT
};

/* For each operation: bytes that follow it, numbers it takes, numbers it leaves. Not there: unknown. */
static const struct {
    bool known;
    uint8_t follow, takes, leaves;
} ops[256] = {
    [OP_ADD] = {1, 0, 2, 1},          [OP_SUB] = {1, 0, 2, 1},          [OP_MUL] = {1, 0, 2, 1},
    [OP_DIV_SIGNED] = {1, 0, 2, 1},   [OP_DIV_UNSIGNED] = {1, 0, 2, 1}, [OP_REM_SIGNED] = {1, 0, 2, 1},
    [OP_REM_UNSIGNED] = {1, 0, 2, 1}, [OP_LSH] = {1, 0, 2, 1},          [OP_RSH_SIGNED] = {1, 0, 2, 1},
    [OP_RSH_UNSIGNED] = {1, 0, 2, 1}, [OP_LOG_NOT] = {1, 0, 1, 1},      [OP_BIT_AND] = {1, 0, 2, 1},
    [OP_BIT_OR] = {1, 0, 2, 1},       [OP_BIT_XOR] = {1, 0, 2, 1},      [OP_BIT_NOT] = {1, 0, 1, 1},
    [OP_EQUAL] = {1, 0, 2, 1},        [OP_LESS_SIGNED] = {1, 0, 2, 1},  [OP_LESS_UNSIGNED] = {1, 0, 2, 1},
    [OP_EXT] = {1, 1, 1, 1},          [OP_REF8] = {1, 0, 1, 1},         [OP_REF16] = {1, 0, 1, 1},
    [OP_REF32] = {1, 0, 1, 1},        [OP_REF64] = {1, 0, 1, 1},        [OP_IF_GOTO] = {1, 2, 1, 0},
    [OP_GOTO] = {1, 2, 0, 0},         [OP_CONST8] = {1, 1, 0, 1},       [OP_CONST16] = {1, 2, 0, 1},
    [OP_CONST32] = {1, 4, 0, 1},      [OP_CONST64] = {1, 8, 0, 1},      [OP_REG] = {1, 2, 0, 1},
    [OP_END] = {1, 0, 0, 0},          [OP_DUP] = {1, 0, 1, 2},          [OP_POP] = {1, 0, 1, 0},
    [OP_ZERO_EXT] = {1, 1, 1, 1},     [OP_SWAP] = {1, 0, 2, 2},         [OP_PICK] = {1, 1, 0, 1},
    [OP_ROT] = {1, 0, 3, 3},
};

/* a OP b. False: division by zero, or one that no processor can do. */
static bool compute(enum op op, uint64_t a, uint64_t b, uint64_t *to) {
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    bool divides = op == OP_DIV_SIGNED || op == OP_DIV_UNSIGNED || op == OP_REM_SIGNED || op == OP_REM_UNSIGNED;
    if (divides && (b == 0 || ((op == OP_DIV_SIGNED || op == OP_REM_SIGNED) && sa == INT64_MIN && sb == -1)))
        return false;
    switch (op) {
    case OP_ADD: *to = a + b; break;
    case OP_SUB: *to = a - b; break;
    case OP_MUL: *to = a * b; break;
    case OP_DIV_SIGNED: *to = (uint64_t)(sa / sb); break;
    case OP_DIV_UNSIGNED: *to = a / b; break;
    case OP_REM_SIGNED: *to = (uint64_t)(sa % sb); break;
    case OP_REM_UNSIGNED: *to = a % b; break;
    case OP_LSH: *to = b < 64 ? a << b : 0; break;
    case OP_RSH_SIGNED: *to = (uint64_t)(sa >> (b < 63 ? b : 63)); break;
    case OP_RSH_UNSIGNED: *to = b < 64 ? a >> b : 0; break;
    case OP_BIT_AND: *to = a & b; break;
    case OP_BIT_OR: *to = a | b; break;
    case OP_BIT_XOR: *to = a ^ b; break;
    case OP_EQUAL: *to = a == b; break;
    case OP_LESS_SIGNED: *to = sa < sb; break;
    case OP_LESS_UNSIGNED: *to = a < b; break;
    default: return false;
    }
    return true;
}

static uint64_t extend(uint64_t v, unsigned bits, bool with_sign) {
    if (bits == 0 || bits >= 64) return v;
    v &= (1ull << bits) - 1;
    return with_sign && v >> (bits - 1) ? v | ~0ull << bits : v;
}

static bool reference(const struct agent_world *w, enum op op, uint64_t *top) {
    uint64_t v = 0;
    if (!w->read(w->arg, *top, &v, 1u << (op - OP_REF8))) return false;
    *top = v;
    return true;
}

bool agent_evaluate(const uint8_t *code, size_t n, const struct agent_world *w, uint64_t *value) {
    uint64_t stack[STACK_MAX];
    size_t pc = 0, depth = 0;
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        if (pc >= n || !ops[code[pc]].known) return false;
        enum op op = code[pc++];
        size_t follow = ops[op].follow;
        if (n - pc < follow || depth < ops[op].takes || depth - ops[op].takes + ops[op].leaves > STACK_MAX)
            return false;
        uint64_t operand = 0;
        for (size_t i = 0; i < follow; i++) operand = operand << 8 | code[pc++];
        uint64_t *top = stack + depth - 1; /* used by operations that take something */
        depth = depth - ops[op].takes + ops[op].leaves;
        switch (op) {
        case OP_END:
            if (depth == 0) return false;
            *value = stack[depth - 1];
            return true;
        case OP_LOG_NOT: *top = !*top; break;
        case OP_BIT_NOT: *top = ~*top; break;
        case OP_EXT: *top = extend(*top, (unsigned)operand, true); break;
        case OP_ZERO_EXT: *top = extend(*top, (unsigned)operand, false); break;
        case OP_REF8:
        case OP_REF16:
        case OP_REF32:
        case OP_REF64:
            if (!reference(w, op, top)) return false;
            break;
        case OP_GOTO: pc = operand; break;
        case OP_IF_GOTO:
            if (*top) pc = operand;
            break;
        case OP_CONST8:
        case OP_CONST16:
        case OP_CONST32:
        case OP_CONST64: stack[depth - 1] = operand; break;
        case OP_REG:
            if (!w->reg(w->arg, (unsigned)operand, &stack[depth - 1])) return false;
            break;
        case OP_DUP: top[1] = top[0]; break;
        case OP_POP: break;
        case OP_SWAP: {
            uint64_t t = top[0];
            top[0] = top[-1];
            top[-1] = t;
            break;
        }
        case OP_ROT: { /* a b c -> c a b */
            uint64_t c = top[0];
            top[0] = top[-1];
            top[-1] = top[-2];
            top[-2] = c;
            break;
        }
        case OP_PICK:
            if (operand >= depth - 1) return false;
            stack[depth - 1] = stack[depth - 2 - operand];
            break;
        default:
            if (!compute(op, top[-1], top[0], &top[-1])) return false;
        }
    }
    return false;
}
