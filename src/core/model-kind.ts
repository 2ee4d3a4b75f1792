type KindModality = 'text' | 'image' | 'audio' | 'video'

/** Facts that all models of a kind share. */
interface KindFacts {
  /** Letter in the stored snapshot of public model data. */
  readonly letter: string
  /** Modalities that its models read and write, if neither their row nor a catalog says it. */
  readonly inputs: readonly KindModality[]
  readonly output: KindModality
  /** Whether scores or vectors of two models cannot be compared, so that no other model is a fallback. */
  readonly isIncomparable?: true
  /** Pattern of the names that models of the kind have in public data. A name matches at most one kind. */
  readonly names?: RegExp
}

/** One row for each kind of models. */
export const KIND_FACTS = {
  chat: { letter: 'c', inputs: ['text'], output: 'text' },
  embedding: { letter: 'e', inputs: ['text'], output: 'text', isIncomparable: true, names: /^(?!.*rerank).*embed/ },
  image: { letter: 'i', inputs: ['text'], output: 'image' },
  image_edit: { letter: 'm', inputs: ['text', 'image'], output: 'image' },
  video: { letter: 'v', inputs: ['text'], output: 'video' },
  speech: { letter: 's', inputs: ['text'], output: 'audio' },
  rerank: { letter: 'r', inputs: ['text'], output: 'text', isIncomparable: true, names: /rerank/ },
  transcription: { letter: 'a', inputs: ['audio'], output: 'text' },
  moderation: { letter: 'o', inputs: ['text'], output: 'text', names: /^(?!.*(?:rerank|embed)).*moderation/ },
} as const satisfies Readonly<Record<string, KindFacts>>

/** Kind of a model. Determines the endpoint that serves it. */
export type ModelKind = keyof typeof KIND_FACTS

/** The kinds of models. */
export const MODEL_KINDS = Object.keys(KIND_FACTS) as [ModelKind, ...ModelKind[]]

/** Kind of a model, including the kinds of endpoints that a host defines. */
export type AnyModelKind = ModelKind | (string & Record<never, never>)

/** Facts of a kind, or `undefined` for a kind that a host defines. */
export function kindFacts(kind: string): KindFacts | undefined {
  return Object.hasOwn(KIND_FACTS, kind) ? KIND_FACTS[kind as ModelKind] : undefined
}
