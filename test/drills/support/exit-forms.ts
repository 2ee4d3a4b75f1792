import { wavFile } from '../../wire/audio/written-files.ts'
import { EXIT_DIALECTS, type ExitDialect } from './exit-dialects.ts'
import type { ExitPlan } from './exit-plan.ts'

/** The model whose first candidate only ever fails, and the id of that candidate at its vendor. */
export const FALLING_MODEL = 'chat-falling'
export const FALLING_UPSTREAM = 'falling'
/** Mark of a prompt that the hook of the drill makes longer. */
export const LONGER_MARK = '(longer)'

/** Name of a form of calls. */
export type ExitForm = keyof typeof FORMS

/** One form of calls. */
export interface ExitFormFacts {
  /** Shape of the vendor's answers. */
  readonly dialect: ExitDialect
  readonly path: string
  /** Share of the calls, of all weights. */
  readonly weight: number
  readonly models: readonly string[]
  /** Chance of a stream. */
  readonly streams: number
  /** Least and highest number of answers, images, documents or lines. */
  readonly count?: readonly [least: number, most: number]
  /** Whether the caller sets no bound, from an account of its own with a cent. */
  readonly isUnbounded?: boolean
  readonly isTiered?: boolean
  /** Whether the same is asked twice, and the second answer may be the first one from the cache. */
  readonly isAskedTwice?: boolean
  /** Whether the call is a task, followed after its submission. */
  readonly task?: 'background' | 'batch'
  /** Price fields of the call. */
  readonly fields?: Readonly<Record<string, string>>
  /** Members of the request but for the model. */
  request(plan: ExitPlan): object
}

type Request = ExitFormFacts['request']

const bound = ({ maxTokens }: ExitPlan): object => (maxTokens === undefined ? {} : { max_tokens: maxTokens })
const stream = ({ isStream }: ExitPlan): object => (isStream ? { stream: true } : {})
const chat: Request = (plan) => ({
  messages: [{ role: 'user', content: plan.prompt }],
  ...bound(plan),
  ...stream(plan),
  ...(plan.tier?.requested === undefined ? {} : { service_tier: plan.tier.requested }),
})
const response: Request = (plan) => ({ input: plan.prompt, max_output_tokens: plan.maxTokens, ...stream(plan) })
const lines =
  (mark: string): Request =>
  (plan) => ({
    lines: Array.from({ length: plan.count }, (_, index) => ({
      ...chat({ ...plan, prompt: `${plan.prompt} line ${index} ${mark}` }),
    })),
  })

const CHAT = { dialect: 'chat', path: '/v1/chat/completions', streams: 0.6, request: chat } as const
const RESPONSE = { dialect: 'responses', path: '/v1/responses', models: ['chat-relayed', 'chat-reasoning'] } as const
const BATCH = {
  ...CHAT,
  path: '/v1/batches',
  models: ['chat-batched'],
  streams: 0,
  count: [2, 4],
  task: 'batch',
  fields: { batch: 'true' },
} as const

const FORMS = {
  chat: { ...CHAT, weight: 22, models: ['chat-relayed', 'chat-relayed', 'chat-reasoning'] },
  'chat, no bound': { ...CHAT, weight: 5, models: ['chat-relayed'], isUnbounded: true },
  'chat, n': {
    ...CHAT,
    weight: 5,
    models: ['chat-relayed', 'chat-reasoning'],
    count: [2, 3],
    request: (plan) => ({ ...chat(plan), n: plan.count }),
  },
  'chat, tier': { ...CHAT, weight: 5, models: ['chat-tiered'], isTiered: true },
  'chat, hook units': { ...CHAT, weight: 4, models: ['chat-guarded'] },
  'chat, cached': {
    ...CHAT,
    weight: 4,
    models: ['chat-cached'],
    isAskedTwice: true,
    request: (plan) => ({ ...chat(plan), temperature: 0 }),
  },
  messages: { ...CHAT, dialect: 'messages', path: '/v1/messages', weight: 18, models: ['cl-sonnet-4-6'] },
  responses: { ...RESPONSE, weight: 9, streams: 0.6, request: response },
  'response in background': {
    ...RESPONSE,
    weight: 4,
    streams: 0,
    task: 'background',
    request: (plan) => ({ ...response(plan), background: true }),
  },
  batch: { ...BATCH, weight: 2, request: lines('') },
  'batch, no bound': { ...BATCH, weight: 1, isUnbounded: true, request: lines('') },
  'batch, rewritten': { ...BATCH, weight: 1, request: lines(LONGER_MARK) },
  embeddings: {
    dialect: 'embeddings',
    path: '/v1/embeddings',
    weight: 5,
    models: ['embedding-relayed'],
    streams: 0,
    request: ({ prompt }) => ({ input: prompt }),
  },
  rerank: {
    dialect: 'rerank',
    path: '/v1/rerank',
    weight: 4,
    models: ['vy-rerank-2.5'],
    streams: 0,
    count: [2, 8],
    request: ({ prompt, count }) => ({ query: prompt, documents: Array.from({ length: count }, () => prompt) }),
  },
  images: {
    dialect: 'images',
    path: '/v1/images/generations',
    weight: 3,
    models: ['gp-image-2'],
    streams: 0.6,
    count: [1, 2],
    request: (plan) => ({ ...stream(plan), prompt: plan.prompt, n: plan.count, quality: 'low', size: '1024x1024' }),
  },
  speech: {
    dialect: 'speech',
    path: '/v1/audio/speech',
    weight: 4,
    models: ['qw3-tts-flash'],
    streams: 1,
    request: ({ prompt }) => ({ input: prompt, voice: 'Cherry', response_format: 'wav' }),
  },
  transcriptions: {
    dialect: 'transcriptions',
    path: '/v1/audio/transcriptions',
    weight: 4,
    models: ['gpt-transcribe'],
    streams: 0.6,
    request: (plan) => ({
      prompt: plan.prompt,
      ...(plan.isStream ? { stream: 'true' } : {}),
      file: new Uint8Array(wavFile({ seconds: plan.seconds, rate: 8_000 })),
    }),
  },
} satisfies Record<string, ExitFormFacts>

/** The forms of the drill. */
export const EXIT_FORMS: Readonly<Record<ExitForm, ExitFormFacts>> = FORMS

export function formOf({ form }: ExitPlan): ExitFormFacts {
  return EXIT_FORMS[form]
}

/** Returns the wire format in which the vendor of a plan answers. */
export function dialectOf(plan: ExitPlan): (typeof EXIT_DIALECTS)[ExitDialect] {
  return EXIT_DIALECTS[formOf(plan).dialect]
}
