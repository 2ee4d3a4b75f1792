/** The kinds of models. */
export const MODEL_KINDS = [
  'chat',
  'embedding',
  'image',
  'image_edit',
  'video',
  'speech',
  'rerank',
  'transcription',
  'moderation',
] as const

/** Kind of a model. Determines the endpoint that serves it. */
export type ModelKind = (typeof MODEL_KINDS)[number]

/** Kind of a model, including the kinds of endpoints that a host defines. */
export type AnyModelKind = ModelKind | (string & Record<never, never>)
