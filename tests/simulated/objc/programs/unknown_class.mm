#import <Metal/Metal.h>
extern "C" id textures() { return [MTLTextureDescriptor new]; }
