/** Part of an input that is judged as a whole: a text, or an image by its URL, which may be a `data:` URL. */
export type ModerationInputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** Moderation request without the model (OpenAI API, "Create moderation"). */
export interface ModerationFields {
  /** One text, several texts with a result each, or parts that are judged together. */
  readonly input: string | readonly string[] | readonly ModerationInputPart[]
}

/** Moderation request without the model, for models that judge only texts. */
export interface TextModerationFields {
  readonly input: string | readonly string[]
}

/** The categories of OpenAI's `omni-moderation` models. */
export type OmniCategory =
  | 'harassment'
  | 'harassment/threatening'
  | 'hate'
  | 'hate/threatening'
  | 'illicit'
  | 'illicit/violent'
  | 'self-harm'
  | 'self-harm/instructions'
  | 'self-harm/intent'
  | 'sexual'
  | 'sexual/minors'
  | 'violence'
  | 'violence/graphic'

/** Judgement of one input, by the categories of the model's vendor. */
export interface ModerationResult<Category extends string = string> {
  /** Whether the vendor considers the input harmful. Some vendors do not report it. */
  readonly flagged?: boolean
  /** Whether each category applies, or `null` if the model does not judge the category. */
  readonly categories: Readonly<Record<Category, boolean | null>>
  /** Score of each category, from 0 to 1. */
  readonly category_scores?: Readonly<Record<Category, number | null>>
  /** Types of input that decided about a category. */
  readonly category_applied_input_types?: Readonly<Record<Category, readonly ('text' | 'image')[] | null>>
}

/** An answer of a moderation model: a result for each text, or one for all parts. */
export interface ModerationAnswer<Result = ModerationResult> {
  readonly id: string
  readonly model: string
  readonly results: readonly Result[]
}

/** An answer of OpenAI's `omni-moderation` models. */
export type OmniModerationAnswer = ModerationAnswer<Required<ModerationResult<OmniCategory>>>

/** A row of {@link ModerationModels}. */
export interface ModerationModel<Request = ModerationFields, Answer = ModerationAnswer> {
  readonly request: Request
  readonly answer: Answer
}

/** Moderation models with narrowed requests and answers. Add your own by `declare module 'signalbox/client'`. */
export interface ModerationModels {
  'omni-moderation-latest': ModerationModel<ModerationFields, OmniModerationAnswer>
  'omni-moderation-2024-09-26': ModerationModel<ModerationFields, OmniModerationAnswer>
}

/** Model of a request that names none. */
export type DefaultModerationModel = 'omni-moderation-latest'

/** A request to a moderation model outside {@link ModerationModels}. */
export type OtherModerationRequest = ModerationFields & { readonly [field: string]: unknown }
