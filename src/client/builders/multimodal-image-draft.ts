import {
  checkAbilities,
  type MultimodalImageRequest,
} from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import { builderFault, Draft } from './draft.ts'

interface State {
  readonly model: ModelFacts
  readonly prompt?: string
  readonly references: readonly string[]
  readonly parameters: NonNullable<MultimodalImageRequest['parameters']>
}

/** An image request in the multimodal shape (API specification, "Multimodal image request"). */
export class MultimodalImageDraft extends Draft<State> {
  prompt(prompt: string): this {
    return this.with({ prompt })
  }
  reference(url: string): this {
    if (!/^https:\/\//i.test(url))
      throw builderFault(`references[${this.state.references.length}]`, 'must be an https URL')
    return this.with({ references: [...this.state.references, url] })
  }
  size(size: string): this {
    return this.#set({ size })
  }
  negativePrompt(text: string): this {
    return this.#set({ negative_prompt: text })
  }
  seed(seed: number): this {
    return this.#set({ seed })
  }
  watermark(isOn = true): this {
    return this.#set({ watermark: isOn })
  }
  promptExtend(isOn = true): this {
    return this.#set({ prompt_extend: isOn })
  }
  stream(): never {
    throw builderFault('stream', 'this shape answers as a whole only')
  }
  build(): MultimodalImageRequest {
    const { model, prompt, references, parameters } = this.state
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    const request: MultimodalImageRequest = {
      model: model.id,
      input: { messages: [{ role: 'user', content: [...references.map((image) => ({ image })), { text: prompt }] }] },
      ...(Object.keys(parameters).length === 0 ? {} : { parameters: { ...parameters } }),
    }
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  }

  #set(change: State['parameters']): this {
    return this.with({ parameters: { ...this.state.parameters, ...change } })
  }
}
