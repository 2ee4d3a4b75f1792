import type { ImageAbilities } from '../../catalog/model-facts.ts'
import { checkPictureOptions } from '../../endpoints/images/openai/openai-image-request.ts'
import type { PlannedImageQuality } from '../models/openai-images.ts'
import { Draft, required, within } from './draft.ts'

/** Maximum number of images (API specification, "Limits"). */
const MAX_PICTURES = 10

/** Maximum number of partial images (OpenAI API, "Create image"). */
const MAX_PARTIAL_IMAGES = 3

/** Steps that every model of OpenAI's shape supports, for new images and edits (OpenAI API, "Create image"). */
export interface PictureSteps {
  quality(quality: PlannedImageQuality): this
  /** Sets the number of images, from 1 to 10. */
  count(pictures: number): this
  endUser(id: string): this
}

/** Steps of models with a choice of formats. */
export interface FormatSteps {
  /** Sets the format. `compression` is from 0 to 100, and is not available for `png`. */
  format(format: 'png' | 'jpeg' | 'webp', compression?: number): this
  /** Sets the background. `transparent` requires `png` or `webp`. */
  background(background: 'transparent' | 'opaque' | 'auto'): this
}

/** Step of models that stream partial images. */
export interface PartialStreamStep<Streaming> {
  /** Requests each image in its own event, after up to 3 partial images, which cost tokens. Default 0. */
  stream(partialImages?: 0 | 1 | 2 | 3): Streaming
}

/** The `stream` member of a request; absent unless the step was used. */
export type StreamField<Stream extends boolean> = Stream extends true ? { readonly stream: true } : unknown

/** Fields of new and edited images of OpenAI's shape. */
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

/** Minimum state of an image draft in OpenAI's shape. */
interface PictureState {
  readonly fields: PictureFields
}

/** Steps that new and edited images of OpenAI's shape have in common. */
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

  /** Returns the fields after the checks of the model's limits. Each of the two routes has its own rule for sizes. */
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

/**
 * Checks the range of numbers and, like the gateway, the fields that depend on the model or on another field. Sizes are checked
 * separately.
 */
function checkPictureFields(fields: PictureFields, abilities: ImageAbilities | undefined): void {
  const { n, partial_images: partialImages, output_compression: compression } = fields
  if (n !== undefined) within('n', n, [1, abilities?.maxImages ?? MAX_PICTURES])
  checkPictureOptions(fields, abilities)
  if (partialImages !== undefined) within('partial_images', partialImages, [0, MAX_PARTIAL_IMAGES])
  if (compression !== undefined) within('output_compression', compression, [0, 100])
}
