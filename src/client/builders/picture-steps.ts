import type { ImageQuality } from '../models/openai-images.ts'

/** Steps that every model of OpenAI's shape takes, new pictures and edits alike (OpenAI API, "Create image"). */
export interface PictureSteps {
  quality(quality: ImageQuality): this
  /** 1 to 10. */
  count(pictures: number): this
  endUser(id: string): this
}

/** Steps of models that let the format be chosen. */
export interface FormatSteps {
  /** `compression` is 0 to 100, and not for `png`. */
  format(format: 'png' | 'jpeg' | 'webp', compression?: number): this
  /** `transparent` needs `png` or `webp`. */
  background(background: 'transparent' | 'opaque' | 'auto'): this
}

/** The step of models that stream unfinished pictures. */
export interface PartialStreamStep<Streaming> {
  /** Pictures come event by event; before each one up to 3 unfinished ones, which cost tokens. Default 0. */
  stream(partialImages?: 0 | 1 | 2 | 3): Streaming
}

/** What a request has of `stream`: nothing, unless the step was taken. */
export type StreamField<Stream extends boolean> = Stream extends true ? { readonly stream: true } : unknown
