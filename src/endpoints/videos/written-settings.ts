import type { VideoIntent } from './video-intent.ts'

/** The parameters that every layout writes in one way; those that an intent does not name stay away. */
export function writtenSettings({ promptExtend, watermark, seed }: VideoIntent): Record<string, unknown> {
  return {
    ...(promptExtend === undefined ? {} : { prompt_extend: promptExtend }),
    ...(watermark === undefined ? {} : { watermark }),
    ...(seed === undefined ? {} : { seed }),
  }
}
