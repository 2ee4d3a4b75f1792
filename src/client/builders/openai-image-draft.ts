import { checkFreeSize } from '../../endpoints/images/openai/image-size.ts'
import type { OpenAIImageRequest } from '../../endpoints/images/openai/openai-image-request.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import { builderFault } from './draft.ts'
import { PictureDraft } from './picture-draft.ts'
import { checkPictureFields, type PictureFields } from './picture-fields.ts'

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
    const { model, fields } = this.state
    const { prompt } = fields
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    checkFreeSize(fields.size, model.image)
    checkPictureFields(fields, model.image)
    return { model: model.id, ...fields, prompt }
  }
}
