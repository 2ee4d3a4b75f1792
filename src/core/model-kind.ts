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

/** What a model does; decides the endpoint that serves it. */
export type ModelKind = (typeof MODEL_KINDS)[number]

/** The same, with the kinds of endpoints that a host defines. */
export type AnyModelKind = ModelKind | (string & Record<never, never>)
