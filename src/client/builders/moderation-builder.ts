import { invalidField } from '../../endpoints/field-errors.ts'
import type { ModelId, RequestOf } from '../models/model-request.ts'
import type { ModerationInputPart, ModerationModels, OtherModerationRequest } from '../models/moderation-models.ts'
import { Draft } from './draft.ts'

/** A moderation request, ready to be sent. */
export type BuiltModeration<Model> = RequestOf<ModerationModels, Model, OtherModerationRequest> & {
  readonly model: Model
}

/** Builds a moderation request step by step. */
export interface ModerationBuilder<Model> {
  /** Adds texts. Each gets its own result, unless there is an image: then all parts are judged together. */
  text(...texts: readonly string[]): this
  /** Adds an image by its URL, which may be a `data:` URL. */
  picture(url: string): this
  /** @throws GatewayError `invalid_request` if there is no input. */
  build(): BuiltModeration<Model>
}

interface State {
  readonly model: string
  readonly parts: readonly ModerationInputPart[]
}

/** Starts a moderation request. */
export function moderation<const Model extends ModelId<ModerationModels>>(model: Model): ModerationBuilder<Model> {
  return new ModerationDraft({ model, parts: [] }) as never
}

class ModerationDraft extends Draft<State> {
  text(...texts: readonly string[]): this {
    return this.with({ parts: [...this.state.parts, ...texts.map((text) => ({ type: 'text', text }) as const)] })
  }
  picture(url: string): this {
    return this.with({ parts: [...this.state.parts, { type: 'image_url', image_url: { url } }] })
  }
  build(): { readonly model: string; readonly input: readonly string[] | readonly ModerationInputPart[] } {
    const { model, parts } = this.state
    if (parts.length === 0) throw invalidField('input', 'needs at least one text or image')
    const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    return { model, input: texts.length === parts.length ? texts : [...parts] }
  }
}
