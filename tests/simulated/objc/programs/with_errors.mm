#import <Metal/Metal.h>
void f(id<MTLDevice> device) {
  [device newCommandLine];
}
