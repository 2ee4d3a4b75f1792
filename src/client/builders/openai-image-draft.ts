import { checkFreeSize, type OpenAIImageRequest } from '../../endpoints/images/openai/openai-image-request.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import { PictureDraft } from './picture-draft.ts'
import type { PictureFields } from './picture-fields.ts'

interface State {
  readonly model: ModelFacts
  readonly fields: PictureFields
}

/** An image request in OpenAI's shape (OpenAI API, "Create image"). */
export class OpenAIImageDraft extends PictureDraft<State> {
  moderation(moderation: string): this {
    return this.set({ moderation })
  }
  build(): OpenAIImageRequest {
    const { model } = this.state
    return { model: model.id, ...this.checked(model.image, checkFreeSize) }
  }
}
