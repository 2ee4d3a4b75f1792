import type { ModelFacts } from '../../catalog/model-facts.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import {
  checkInteractionAbilities,
  type InteractionBlock,
  type InteractionRequest,
} from '../../endpoints/images/interactions/interaction-request.ts'
import {
  checkAbilities,
  type MultimodalImageRequest,
} from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import { checkFreeSize, type OpenAIImageRequest } from '../../endpoints/images/openai/openai-image-request.ts'
import { Draft, required, within } from './draft.ts'
import { PictureDraft, type PictureFields } from './picture-draft.ts'

/** Image as base64 data or as a URL. */
export type InteractionPicture =
  | { readonly mimeType: string; readonly data: string }
  | { readonly mimeType: string; readonly uri: string }

interface MultimodalState {
  readonly model: ModelFacts
  readonly prompt?: string
  readonly references: readonly string[]
  readonly parameters: NonNullable<MultimodalImageRequest['parameters']>
}

/** An image request in the multimodal shape (API specification, "Multimodal image request"). */
export class MultimodalImageDraft extends Draft<MultimodalState> {
  prompt(prompt: string): this {
    return this.with({ prompt })
  }
  reference(url: string): this {
    if (!/^https:\/\//i.test(url))
      throw invalidField(`references[${this.state.references.length}]`, 'must be an https URL')
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
    throw invalidField('stream', 'this shape does not stream')
  }
  build(): MultimodalImageRequest {
    const { model, references, parameters } = this.state
    const prompt = required('prompt', this.state.prompt)
    const request: MultimodalImageRequest = {
      model: model.id,
      input: { messages: [{ role: 'user', content: [...references.map((image) => ({ image })), { text: prompt }] }] },
      ...(Object.keys(parameters).length === 0 ? {} : { parameters: { ...parameters } }),
    }
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  }

  #set(change: MultimodalState['parameters']): this {
    return this.with({ parameters: { ...this.state.parameters, ...change } })
  }
}

interface InteractionState {
  readonly model: ModelFacts
  readonly prompt?: string
  readonly references: readonly InteractionBlock[]
  readonly format: { readonly image_size?: string; readonly aspect_ratio?: string }
  readonly config: NonNullable<InteractionRequest['generation_config']>
  readonly system?: string
  readonly previousId?: string
  readonly isStored?: boolean
  readonly isStreamed?: true
}

/** An image request in the interactions shape (API specification, "Interactions-style image request"). */
export class InteractionImageDraft extends Draft<InteractionState> {
  prompt(prompt: string): this {
    return this.with({ prompt })
  }
  size(size: string): this {
    return this.with({ format: { ...this.state.format, image_size: size } })
  }
  aspectRatio(ratio: string): this {
    return this.with({ format: { ...this.state.format, aspect_ratio: ratio } })
  }
  reference({ mimeType, ...picture }: InteractionPicture): this {
    return this.with({ references: [...this.state.references, { type: 'image', mime_type: mimeType, ...picture }] })
  }
  system(instruction: string): this {
    return this.with({ system: instruction })
  }
  temperature(value: number): this {
    const temperature = within('generation_config.temperature', value, [0, 2])
    return this.with({ config: { ...this.state.config, temperature } })
  }
  thinking(level: string): this {
    return this.with({ config: { ...this.state.config, thinking_level: level } })
  }
  continuing(interactionId: string): this {
    return this.with({ previousId: interactionId })
  }
  store(isStored: boolean): this {
    return this.with({ isStored })
  }
  stream(partialImages?: number): this {
    if (partialImages !== undefined) throw invalidField('partial_images', 'this shape has no partial images')
    return this.with({ isStreamed: true })
  }
  build(): InteractionRequest {
    const { model, references, format, config, system, previousId, isStored, isStreamed } = this.state
    const prompt = required('prompt', this.state.prompt)
    if (isStored === false && previousId !== undefined) {
      throw invalidField('previous_interaction_id', 'cannot be combined with store false')
    }
    const request: InteractionRequest = {
      model: model.id,
      input: references.length === 0 ? prompt : [...references, { type: 'text', text: prompt }],
      ...(system === undefined ? {} : { system_instruction: system }),
      ...(Object.keys(format).length === 0 ? {} : { response_format: { type: 'image', ...format } }),
      ...(Object.keys(config).length === 0 ? {} : { generation_config: { ...config } }),
      ...(previousId === undefined ? {} : { previous_interaction_id: previousId }),
      ...(isStored === undefined ? {} : { store: isStored }),
      ...(isStreamed === undefined ? {} : { stream: isStreamed }),
    }
    checkInteractionAbilities(request, model)
    return request
  }
}

interface OpenAIState {
  readonly model: ModelFacts
  readonly fields: PictureFields
}

/** An image request in OpenAI's shape (OpenAI API, "Create image"). */
export class OpenAIImageDraft extends PictureDraft<OpenAIState> {
  moderation(moderation: string): this {
    return this.set({ moderation })
  }
  build(): OpenAIImageRequest {
    const { model } = this.state
    return { model: model.id, ...this.checked(model.image, checkFreeSize) }
  }
}
