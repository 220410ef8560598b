#pragma once
typedef double CGFloat;
typedef struct CGPoint { CGFloat x, y; } CGPoint;
typedef struct CGSize { CGFloat width, height; } CGSize;
typedef struct CGRect {
  CGPoint origin;
  CGSize size;
} CGRect;
