import { checkFreeSize } from '../../endpoints/images/openai/image-size.ts'
import type { OpenAIImageRequest } from '../../endpoints/images/openai/openai-image-request.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import { builderFault, Draft } from './draft.ts'
import { checkPictureFields, type PictureFields } from './picture-fields.ts'

interface State {
  readonly model: ModelFacts
  readonly fields: PictureFields & { readonly moderation?: string }
}

/** An image request in OpenAI's shape (OpenAI API, "Create image"). */
export class OpenAIImageDraft extends Draft<State> {
  prompt(prompt: string): this {
    return this.#set({ prompt })
  }
  size(size: string): this {
    return this.#set({ size })
  }
  count(n: number): this {
    return this.#set({ n })
  }
  quality(quality: string): this {
    return this.#set({ quality })
  }
  format(format: string, compression?: number): this {
    return this.#set({
      output_format: format,
      ...(compression === undefined ? {} : { output_compression: compression }),
    })
  }
  background(background: string): this {
    return this.#set({ background })
  }
  moderation(moderation: string): this {
    return this.#set({ moderation })
  }
  endUser(user: string): this {
    return this.#set({ user })
  }
  build(): OpenAIImageRequest {
    const { model, fields } = this.state
    const { prompt } = fields
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    checkFreeSize(fields.size, model.image)
    checkPictureFields(fields, model.image)
    return { model: model.id, ...fields, prompt }
  }

  #set(change: State['fields']): this {
    return this.with({ fields: { ...this.state.fields, ...change } })
  }
}
