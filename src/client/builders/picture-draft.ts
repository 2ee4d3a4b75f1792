import type { ImageAbilities } from '../../endpoints/model-facts.ts'
import { builderFault, Draft } from './draft.ts'
import { checkPictureFields, type PictureFields } from './picture-fields.ts'

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
    const { prompt } = fields
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    checkSize(fields.size, abilities)
    checkPictureFields(fields, abilities)
    return { ...fields, prompt }
  }

  protected set(change: PictureFields): this {
    return this.with({ fields: { ...this.state.fields, ...change } } as Partial<State>)
  }
}
