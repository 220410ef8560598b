// Non-public methods of Foundation's values for the Metal framework.
#pragma once
#import <Foundation/Foundation.h>

@interface NSError (Simulated)
+ (instancetype)simulatedErrorOf:(NSString*)domain message:(NSString*)message;
@end
