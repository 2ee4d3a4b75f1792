import { seededNumbers } from './seeded-numbers.ts'

/** What is asked for. */
export type ExitForm = 'chat' | 'messages' | 'embeddings' | 'images' | 'speech'

/** How a call ends. */
export type ExitKind =
  | 'whole answer'
  | 'no usage reported'
  | 'caller leaves'
  | 'caller leaves, asks again'
  | 'vendor cuts'
  | 'vendor is too slow'
  | 'fallback'
  | 'replay'

/** What a host may say about callers who leave; undefined: nothing. */
export type ExitPolicy = 'cancel' | 'drain' | undefined

/** How the first model of a fallback fails. */
export type FirstFailure = 'status' | 'error after usage'

/** How an answer fails that does not come in time: a server before the vendor says so, or nobody says anything. */
export type Lateness = 'status 504' | 'silence'

/** One call of the loss table. */
export interface ExitPlan {
  readonly id: number
  readonly kind: ExitKind
  readonly form: ExitForm
  readonly isStream: boolean
  readonly policy: ExitPolicy
  /** Public id of the model that answers. */
  readonly model: string
  readonly prompt: string
  /** The answer's text, in the vendor's tokens. */
  readonly tokens: readonly string[]
  readonly tokensPerChunk: number
  /** Tokens of reasoning that nobody sees, all of them before the text. */
  readonly hiddenTokens: number
  readonly maxTokens: number
  readonly pictures: number
  /** Part of the answer after which the caller leaves or the vendor cuts. */
  readonly at: number
  readonly firstFailure: FirstFailure
  readonly lateness: Lateness
}

/** Where a vendor has how many bytes for a token: all within what tokenizers of today do with English prose. */
const VOCABULARIES: Readonly<Record<string, readonly string[]>> = {
  // 4.4 bytes
  'chat-relayed': [' the', ' harbour', ' wakes', ' city', ' and', ' its', ' cranes', ',', ' move', ' dark', '.', ' it'],
  // 4.0 bytes
  'chat-reasoning': [' the', ' of', ' quiet', ' sea', ' and', ' rope', 's', ' café', ',', ' lights', ' by', ' ship'],
  // 3.6 bytes
  'cl-sonnet-4-6': [
    ' the',
    ' to',
    ' wa',
    'kes',
    ' city',
    ' and',
    '—',
    ' cran',
    'es',
    ',',
    ' move',
    ' dark',
    ' in',
    ' ro',
  ],
}

const KINDS: readonly (readonly [ExitKind, number])[] = [
  ['whole answer', 25],
  ['no usage reported', 10],
  ['caller leaves', 35],
  ['caller leaves, asks again', 5],
  ['vendor cuts', 10],
  ['vendor is too slow', 3],
  ['fallback', 8],
  ['replay', 7],
]
const FORMS: readonly (readonly [ExitForm, number])[] = [
  ['chat', 50],
  ['messages', 30],
  ['embeddings', 8],
  ['images', 4],
  ['speech', 8],
]
const POLICIES: readonly ExitPolicy[] = ['cancel', 'drain', undefined]

/** So many calls, the same ones for the same seed. */
export function planExits(count: number, seed: number): ExitPlan[] {
  const random = seededNumbers(seed)
  const upTo = (most: number): number => Math.floor(random() * most)
  const among = <Value>(values: readonly Value[]): Value => values[upTo(values.length)]!
  const weighted = <Value>(rows: readonly (readonly [Value, number])[]): Value => {
    let left = random() * rows.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [value, weight] of rows) {
      left -= weight
      if (left < 0) return value
    }
    return rows[0]![0]
  }
  return Array.from({ length: count }, (_, id) => {
    const kind = weighted(KINDS)
    const form: ExitForm = kind === 'fallback' ? 'chat' : weighted(FORMS)
    const model = kind === 'fallback' ? 'chat-relayed' : modelOf(form, random())
    const isStream = form === 'embeddings' ? false : form === 'speech' || random() < 0.6
    const vocabulary = VOCABULARIES[model] ?? VOCABULARIES['chat-relayed']!
    const tokens = Array.from({ length: 20 + upTo(600) }, () => among(vocabulary))
    const hiddenTokens = model === 'chat-reasoning' ? 50 + upTo(400) : 0
    return {
      id,
      kind,
      form,
      isStream,
      policy: among(POLICIES),
      model,
      prompt: `[exit ${id}] ${Array.from({ length: 4 + upTo(60) }, () => among(VOCABULARIES['chat-relayed']!)).join('')}`,
      tokens,
      tokensPerChunk: 1 + upTo(60),
      hiddenTokens,
      maxTokens: tokens.length + hiddenTokens + upTo(800),
      pictures: 1 + upTo(2),
      at: random(),
      firstFailure: random() < 0.5 || !isStream ? 'status' : 'error after usage',
      lateness: random() < 0.5 ? 'status 504' : 'silence',
    }
  })
}

function modelOf(form: ExitForm, chance: number): string {
  switch (form) {
    case 'chat':
      return chance < 0.7 ? 'chat-relayed' : 'chat-reasoning'
    case 'messages':
      return 'cl-sonnet-4-6'
    case 'embeddings':
      return 'embedding-relayed'
    case 'images':
      return 'gp-image-2'
    case 'speech':
      return 'qw3-tts-flash'
  }
}
