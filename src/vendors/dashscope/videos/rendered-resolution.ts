import { readRenderedSize } from '../../../endpoints/videos/video-rendering.ts'

/**
 * The tier that a task record says was rendered, as callers write it: from `SR`, a number or a text, else from `size` or
 * `video_ratio`, which are both pixels. Undefined when it does not say.
 */
export function renderedResolution(usage: Readonly<Record<string, unknown>>): string | undefined {
  const { SR: tier } = usage
  if (typeof tier === 'number' || typeof tier === 'string') {
    const lines = /^\s*([1-9]\d{0,4})\s*p?\s*$/i.exec(String(tier))?.[1]
    if (lines !== undefined) return `${lines}p`
  }
  for (const size of [usage['size'], usage['video_ratio']]) {
    const geometry = typeof size === 'string' ? readRenderedSize(size) : undefined
    if (geometry !== undefined) return geometry.resolution
  }
  return undefined
}
