import type { ImageAbilities } from '../../catalog/model-facts.ts'
import { checkPictureOptions } from '../../endpoints/images/openai/openai-image-request.ts'
import type { PlannedImageQuality } from '../models/openai-images.ts'
import { Draft, required, within } from './draft.ts'

/** API specification, "Limits". */
const MAX_PICTURES = 10

/** OpenAI API, "Create image". */
const MAX_PARTIAL_IMAGES = 3

/** Steps that every model of OpenAI's shape takes, new pictures and edits alike (OpenAI API, "Create image"). */
export interface PictureSteps {
  quality(quality: PlannedImageQuality): this
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
  /** Each picture comes in its own event; before it up to 3 unfinished ones, which cost tokens. Default 0. */
  stream(partialImages?: 0 | 1 | 2 | 3): Streaming
}

/** The `stream` member of a request: absent, unless the step was used. */
export type StreamField<Stream extends boolean> = Stream extends true ? { readonly stream: true } : unknown

/** Fields by which both new and edited pictures of OpenAI's shape are described. */
export interface PictureFields {
  readonly prompt?: string
  readonly n?: number
  readonly size?: string
  readonly quality?: string
  readonly output_format?: string
  readonly output_compression?: number
  readonly background?: string
  readonly response_format?: string
  readonly moderation?: string
  readonly user?: string
  readonly stream?: true
  readonly partial_images?: number
}

/** What a draft of a picture in OpenAI's shape holds at least. */
interface PictureState {
  readonly fields: PictureFields
}

/** The steps that new and edited pictures of OpenAI's shape have in common. */
export abstract class PictureDraft<State extends PictureState> extends Draft<State> {
  prompt(prompt: string): this {
    return this.set({ prompt })
  }
  size(size: string): this {
    return this.set({ size })
  }
  count(n: number): this {
    return this.set({ n })
  }
  quality(quality: string): this {
    return this.set({ quality })
  }
  format(format: string, compression?: number): this {
    return this.set({
      output_format: format,
      ...(compression === undefined ? {} : { output_compression: compression }),
    })
  }
  background(background: string): this {
    return this.set({ background })
  }
  endUser(user: string): this {
    return this.set({ user })
  }
  stream(partialImages?: number): this {
    return this.set({ stream: true, ...(partialImages === undefined ? {} : { partial_images: partialImages }) })
  }

  /** The fields, once they are known to be what the model takes. Each of the two routes has its own rule for sizes. */
  protected checked(
    abilities: ImageAbilities | undefined,
    checkSize: (size: string | undefined, abilities: ImageAbilities | undefined) => void,
  ): PictureFields & { readonly prompt: string } {
    const { fields } = this.state
    const prompt = required('prompt', fields.prompt)
    checkSize(fields.size, abilities)
    checkPictureFields(fields, abilities)
    return { ...fields, prompt }
  }

  protected set(change: PictureFields): this {
    return this.with({ fields: { ...this.state.fields, ...change } } as Partial<State>)
  }
}

/** Checks the bounds of numbers, and as the gateway does what depends on the model or on another field. Sizes are checked apart. */
function checkPictureFields(fields: PictureFields, abilities: ImageAbilities | undefined): void {
  const { n, partial_images: partialImages, output_compression: compression } = fields
  if (n !== undefined) within('n', n, [1, abilities?.maxImages ?? MAX_PICTURES])
  checkPictureOptions(fields, abilities)
  if (partialImages !== undefined) within('partial_images', partialImages, [0, MAX_PARTIAL_IMAGES])
  if (compression !== undefined) within('output_compression', compression, [0, 100])
}
