import { Draft } from './draft.ts'
import type { PictureFields } from './picture-fields.ts'

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

  protected set(change: PictureFields): this {
    return this.with({ fields: { ...this.state.fields, ...change } } as Partial<State>)
  }
}
