import { EXIT_FORMS, type ExitForm } from './exit-forms.ts'
import { seededNumbers } from './seeded-numbers.ts'

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

/** Host's policy for disconnected callers, or `undefined` for the default. */
export type ExitPolicy = 'cancel' | 'drain' | undefined

/** How the first model of a fallback fails. */
export type FirstFailure = 'status' | 'error after usage'

/** How an answer fails that does not come in time: a server before the vendor says so, or nobody says anything. */
export type Lateness = 'status 504' | 'silence'

/** Requested tier of service, if any, and the tier that the vendor uses. */
export interface ExitTier {
  readonly requested: 'priority' | undefined
  readonly used: 'priority' | 'default'
}

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
  /** The answer's text, in the vendor's tokens. Without a bound the answer repeats it up to the bound that the vendor gets. */
  readonly tokens: readonly string[]
  readonly tokensPerChunk: number
  /** Tokens of reasoning that nobody sees, all of them before the text. */
  readonly hiddenTokens: number
  /** Bound of the output, if the caller sets one. */
  readonly maxTokens: number | undefined
  /** Number of answers (`n`), images, documents or lines of a batch. */
  readonly count: number
  /** Length of a recording. */
  readonly seconds: number
  readonly tier: ExitTier | undefined
  /** Part of the answer after which the caller disconnects or the vendor cuts. */
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
const FORMS = (Object.keys(EXIT_FORMS) as ExitForm[]).map((form) => [form, EXIT_FORMS[form].weight] as const)
const POLICIES: readonly ExitPolicy[] = ['cancel', 'drain', undefined]
const TIERS: readonly ExitTier[] = [
  { requested: 'priority', used: 'default' },
  { requested: 'priority', used: 'priority' },
  { requested: undefined, used: 'priority' },
]

/** Plans `count` calls; the same seed gives the same calls. */
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
    const chosen = weighted(KINDS)
    const form: ExitForm = chosen === 'fallback' ? 'chat' : weighted(FORMS)
    const facts = EXIT_FORMS[form]
    // A task is asked for once: its caller has its id.
    const kind = facts.task !== undefined && /replay|again/.test(chosen) ? 'whole answer' : chosen
    const model = kind === 'fallback' ? 'chat-relayed' : among(facts.models)
    const isStream = random() < facts.streams
    const vocabulary = VOCABULARIES[model] ?? VOCABULARIES['chat-relayed']!
    const tokens = Array.from({ length: 20 + upTo(600) }, () => among(vocabulary))
    const hiddenTokens = model === 'chat-reasoning' ? 50 + upTo(400) : 0
    const words = Array.from({ length: 4 + upTo(60) }, () => among(VOCABULARIES['chat-relayed']!)).join('')
    const [least, most] = facts.count ?? [1, 1]
    return {
      id,
      kind,
      form,
      isStream,
      policy: among(POLICIES),
      model,
      prompt: `[exit ${id}]${words}`,
      tokens,
      tokensPerChunk: (facts.isUnbounded === true ? 20 : 1) + upTo(40),
      hiddenTokens,
      maxTokens: facts.isUnbounded === true ? undefined : tokens.length + hiddenTokens + upTo(800),
      count: least + upTo(most - least + 1),
      seconds: 1 + upTo(8),
      tier: facts.isTiered === true ? among(TIERS) : undefined,
      at: random(),
      firstFailure: random() < 0.5 || !isStream ? 'status' : 'error after usage',
      lateness: random() < 0.5 ? 'status 504' : 'silence',
    }
  })
}
