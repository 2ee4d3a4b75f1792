/** Width and height in pixels. */
export interface PixelSize {
  readonly width: number
  readonly height: number
}

const SIZE = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/

/** Reads a size as callers write it: `1536x864`. Undefined for anything else, words such as `auto` and `2K` included. */
export function parsePixelSize(text: string): PixelSize | undefined {
  const match = SIZE.exec(text)
  return match === null ? undefined : { width: Number(match[1]), height: Number(match[2]) }
}
