import {
  checkInteractionAbilities,
  type InteractionBlock,
  type InteractionRequest,
} from '../../endpoints/images/interactions/interaction-request.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import { builderFault, Draft, within } from './draft.ts'
import type { InteractionPicture } from './image-steps.ts'

interface State {
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
export class InteractionImageDraft extends Draft<State> {
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
    if (partialImages !== undefined) throw builderFault('partial_images', 'this shape has no unfinished pictures')
    return this.with({ isStreamed: true })
  }
  build(): InteractionRequest {
    const { model, prompt, references, format, config, system, previousId, isStored, isStreamed } = this.state
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    if (isStored === false && previousId !== undefined) {
      throw builderFault('previous_interaction_id', 'cannot be combined with store false')
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
