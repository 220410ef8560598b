// out: 3 4 5 6
#include <metal_stdlib>
using namespace metal;
class Field {
public:
  Field() = default;
  constexpr Field(uint x) : v(x) {}
  constexpr Field operator*(Field r) const { return Field(v * r.v); }
  constexpr Field operator+(const thread Field& r) const { return Field(v + r.v); }
  uint value() const { return v; }

private:
  uint v;
};
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  device Field* fields = (device Field*)out;
  fields[i] = Field(3);
  Field mine = fields[i] * Field(1);
  fields[i] = mine + Field(i);
  out[i] = mine.value() + i;
}
