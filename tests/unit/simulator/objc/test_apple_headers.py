"""Headers for type checking, made from what Apple's open wrapper and a TypeScript package declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.simulator.objc.apple.metal_header import metal_header
from mpsmith.simulator.objc.apple.mps_headers import GRAPH, SHADERS, mps_headers, selectors_in

BRIDGE = """
namespace MTL::Private::Class { _MTL_PRIVATE_DEF_CLS(MTLCompileOptions); }
namespace MTL::Private::Protocol { _MTL_PRIVATE_DEF_PRO(MTLDevice); _MTL_PRIVATE_DEF_PRO(MTLBuffer); }
namespace MTL::Private::Selector {
_MTL_PRIVATE_DEF_SEL(name, "name");
_MTL_PRIVATE_DEF_SEL(newBufferWithBytes_length_options_, "newBufferWithBytes:length:options:");
_MTL_PRIVATE_DEF_SEL(setOwner_, "setOwner:");
}
"""
DEVICE = """
namespace MTL
{
_MTL_OPTIONS(NS::UInteger, ResourceOptions) {
    ResourceStorageModeShared = 0,
    ResourceStorageModePrivate = ResourceStorageModeShared | 32,
};
struct Size
{
    Size() = default;
    NS::UInteger width;
} _MTL_PACKED;
using CommandBufferHandler = void (^)(Buffer*);
class Buffer : public NS::Referencing<Buffer> {};
class Device : public NS::Referencing<Device> {};
}
_MTL_INLINE NS::String* MTL::Device::name() const
{
    return Object::sendMessage<NS::String*>(this, _MTL_PRIVATE_SEL(name));
}
_MTL_INLINE MTL::Buffer* MTL::Device::newBuffer(const void* pointer, NS::UInteger length, MTL::ResourceOptions options)
{
    return Object::sendMessage<MTL::Buffer*>(
        this, _MTL_PRIVATE_SEL(newBufferWithBytes_length_options_), pointer, length, options);
}
_MTL_INLINE void MTL::Device::setOwner(task_id_token_t owner)
{
    Object::sendMessage<void>(this, _MTL_PRIVATE_SEL(setOwner_), owner);
}
"""


@pytest.fixture
def header(tmp_path: Path) -> object:
    (tmp_path / "MTLHeaderBridge.hpp").write_text(BRIDGE)
    (tmp_path / "MTLDevice.hpp").write_text(DEVICE)
    return metal_header(tmp_path)


def test_a_method_gets_its_selector_and_types_back(header: object) -> None:
    text = header.text  # type: ignore[attr-defined]
    assert "- (NSString *)name;" in text
    assert (
        "- (id<MTLBuffer>)newBufferWithBytes:(const void *)pointer length:(NSUInteger)length "
        "options:(MTLResourceOptions)options;"
    ) in text


def test_enumerators_get_the_prefix_of_their_framework(header: object) -> None:
    assert "MTLResourceStorageModePrivate = MTLResourceStorageModeShared | 32" in header.text  # type: ignore[attr-defined]


def test_structs_and_blocks(header: object) -> None:
    assert "typedef struct { NSUInteger width; } MTLSize;" in header.text  # type: ignore[attr-defined]
    assert "typedef void (^MTLCommandBufferHandler)(id<MTLBuffer>);" in header.text  # type: ignore[attr-defined]


def test_a_type_that_cannot_be_turned_back_leaves_its_method_out(header: object) -> None:
    assert header.left_out == ("-[MTLDevice setOwner:]",)  # type: ignore[attr-defined]
    assert header.methods == 2  # type: ignore[attr-defined]


SHADERS_TS = """
declare const MPSDataType: {
  Float32: 268435488,
  Bool: -2147483640,
};
declare class MPSKernel extends NSObject {
  static new(): this;
  encodeToCommandBufferSourceArray(commandBuffer: MTLCommandBuffer, source: NSArray<interop.Object>): void;
  label: string;
}
"""
GRAPH_TS = """
declare class MPSGraph extends NSObject {
  readonly placeholderTensors: NSArray;
  run(): this;
  lost(a: number): void;
}
"""


def test_selectors_join_the_way_typescript_names_methods() -> None:
    by_name = selectors_in(b"encodeToCommandBuffer:sourceArray:\0run\0x\0")
    assert by_name["encodeToCommandBufferSourceArray"] == ("encodeToCommandBuffer:sourceArray:",)


def test_mps_headers() -> None:
    selectors = selectors_in(b"\0encodeToCommandBuffer:sourceArray:\0run\0")
    below = "@protocol MTLCommandBuffer;\n"
    headers = mps_headers(
        {SHADERS: SHADERS_TS, GRAPH: GRAPH_TS}, selectors, below, "@interface NSArray : NSObject\n@end\n"
    )
    shaders, graph = headers[SHADERS].text, headers[GRAPH].text
    assert "- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)a0 sourceArray:(NSArray *)a1;" in shaders
    assert "MPSDataTypeBool = 2147483656" in shaders
    assert "@property (nonatomic) NSString * label;" in shaders
    assert "- (instancetype)run;" in graph
    assert headers[GRAPH].left_out == ("MPSGraph.lost",)
