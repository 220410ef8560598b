// What Metal needs of Foundation's values beyond their public interface.
#pragma once
#import <Foundation/Foundation.h>

@interface NSError (Simulated)
+ (instancetype)simulatedErrorOf:(NSString*)domain message:(NSString*)message;
@end
