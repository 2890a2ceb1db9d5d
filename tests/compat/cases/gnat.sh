# needs: gnatmake
# timeout: 100
cat >a.adb <<'E'
with Ada.Text_IO; use Ada.Text_IO;
procedure A is
  protected P is procedure Add (X : Integer); function Get return Integer; private S : Integer := 0; end P;
  protected body P is procedure Add (X : Integer) is begin S := S + X; end Add; function Get return Integer is (S); end P;
  procedure Go is task type T; task body T is begin for I in 1 .. 2000 loop P.Add (1); end loop; delay 0.01; end T; X : array (1 .. 4) of T; begin null; end Go;
  type R is access Integer; N : R := null; Z : Integer := 0;
begin Go; Put_Line (Integer'Image (P.Get)); begin Z := N.all; exception when Constraint_Error => Put_Line ("ce"); end; begin Z := 1 / Z; exception when others => Put_Line ("div"); end; end A;
E
$RUN gnatmake -q a.adb; echo "status $?"; $RUN ./a; echo "status $?"
