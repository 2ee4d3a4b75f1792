import { addUsage, type Usage } from '../../../src/core/usage.ts'
import { soundEvent } from '../../gateway/audio/speech-vendor.ts'
import type { ExitPlan } from './exit-plan.ts'

/** Tokens of an image in the size and quality of the drill, by the vendor's table. */
const PICTURE_TOKENS = 272
const SOUND = new Uint8Array(4_800)

/** One call as its vendor answers it. */
export interface AnsweredCall {
  readonly plan: ExitPlan
  /** Tokens of the prompt that arrived. */
  readonly inputTokens: number
  /** The text of each answer. */
  readonly tokens: readonly string[]
  /** Number of answers, images or documents. */
  readonly count: number
  /** Whether the answer reports usage. */
  readonly isReported: boolean
}

/** Bytes, and what is billed more once they are made. */
export interface Piece {
  readonly text: string
  readonly usage?: Usage
}

interface DialectFacts {
  /** Whether everything is made and billed although its caller has left the stream. */
  readonly isMadeAnyway?: boolean
  /** Events of a stream. Together they are billed like a whole answer. */
  pieces(call: AnsweredCall): readonly Piece[]
  whole(call: AnsweredCall): object
  /** Bytes of a stream that its caller reads, roughly. */
  streamBytes(plan: ExitPlan): number
}

export type ExitDialect =
  | 'chat'
  | 'messages'
  | 'responses'
  | 'embeddings'
  | 'rerank'
  | 'images'
  | 'speech'
  | 'transcriptions'

const ENVELOPE = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
const textBytes = ({ tokens, tokensPerChunk, count }: ExitPlan): number =>
  300 + (tokens.length / tokensPerChunk) * 180 * count + tokens.length * 4.2 * count

/** The wire format of each vendor, and what it bills. */
export const EXIT_DIALECTS: Readonly<Record<ExitDialect, DialectFacts>> = {
  chat: {
    streamBytes: textBytes,
    pieces(call) {
      const { plan, inputTokens } = call
      const answers = answersOf(call)
      const chunk = (choices: object[], rest: object = {}): string =>
        data({ ...ENVELOPE, ...tierOf(plan), choices, ...rest })
      const each = (delta: object, finish: string | null = null): string =>
        answers.map((index) => chunk([{ index, delta, finish_reason: finish, logprobs: null }])).join('')
      return [
        { text: '', usage: { inputTokens } },
        ...unseen(plan, answers.length),
        { text: each({ role: 'assistant', content: '' }) },
        ...textPieces(call, (content) => each({ content }), answers.length),
        { text: each({}, 'stop') },
        ...(call.isReported ? [{ text: chunk([], { usage: chatReport(call) }) }] : []),
        { text: 'data: [DONE]\n\n' },
      ]
    },
    whole(call) {
      const message = { role: 'assistant', content: call.tokens.join(''), refusal: null }
      const choices = answersOf(call).map((index) => ({ index, message, finish_reason: 'stop', logprobs: null }))
      const members = { ...ENVELOPE, object: 'chat.completion', ...tierOf(call.plan), choices }
      return { ...members, ...reported(call, chatReport) }
    },
  },
  messages: {
    streamBytes: textBytes,
    pieces(call) {
      const { inputTokens, tokens } = call
      const begun = reported(call, () => ({ input_tokens: inputTokens, output_tokens: 1 }))
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], ...begun }
      const ended = reported(call, () => ({ output_tokens: tokens.length }))
      return [
        { text: '', usage: { inputTokens } },
        { text: event('message_start', { message }) },
        { text: event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) },
        ...textPieces(call, (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
        { text: event('content_block_stop', { index: 0 }) },
        { text: event('message_delta', { delta: { stop_reason: 'end_turn' }, ...ended }) },
        { text: event('message_stop', {}) },
      ]
    },
    whole(call) {
      const usage = reported(call, ({ inputTokens, tokens }) => ({
        input_tokens: inputTokens,
        output_tokens: tokens.length,
      }))
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', ...usage }
      return { ...message, stop_sequence: null, content: [{ type: 'text', text: call.tokens.join('') }] }
    },
  },
  responses: {
    streamBytes: (plan) => textBytes(plan) + 1_500,
    pieces(call) {
      const text = call.tokens.join('')
      const response = responseBody(call)
      const [message] = response.output
      const begun = { ...response, status: 'in_progress', output: [], usage: null }
      const place = { item_id: message.id, output_index: 0, content_index: 0 }
      const part = { type: 'output_text', text, annotations: [], logprobs: [] }
      let sequence = 0
      const numbered = (type: string, members: object): string =>
        event(type, { sequence_number: sequence++, ...members })
      return [
        { text: '', usage: { inputTokens: call.inputTokens } },
        { text: numbered('response.created', { response: begun }) },
        { text: numbered('response.in_progress', { response: begun }) },
        ...unseen(call.plan, 1),
        {
          text: numbered('response.output_item.added', {
            output_index: 0,
            item: { ...message, status: 'in_progress', content: [] },
          }),
        },
        { text: numbered('response.content_part.added', { ...place, part: { ...part, text: '' } }) },
        ...textPieces(call, (delta) => numbered('response.output_text.delta', { ...place, delta, logprobs: [] })),
        { text: numbered('response.output_text.done', { ...place, text, logprobs: [] }) },
        { text: numbered('response.content_part.done', { ...place, part }) },
        { text: numbered('response.output_item.done', { output_index: 0, item: message }) },
        { text: numbered('response.completed', { response }) },
      ]
    },
    whole: responseBody,
  },
  embeddings: {
    streamBytes: () => 0,
    pieces: ({ inputTokens }) => [{ text: '', usage: { inputTokens } }],
    whole: (call) => ({
      object: 'list',
      model: 'm',
      data: [{ object: 'embedding', index: 0, embedding: [1, 0] }],
      ...reported(call, ({ inputTokens }) => ({ prompt_tokens: inputTokens, total_tokens: inputTokens })),
    }),
  },
  rerank: {
    streamBytes: () => 0,
    // The query counts once for each document.
    pieces: (call) => [{ text: '', usage: { inputTokens: rankedTokens(call) } }],
    whole: (call) => ({
      object: 'list',
      model: 'm',
      data: answersOf(call).map((index) => ({ index, relevance_score: 1 / (index + 2) })),
      ...reported(call, () => ({ total_tokens: rankedTokens(call) })),
    }),
  },
  images: {
    isMadeAnyway: true,
    streamBytes: ({ count }) => 200 + count * 300,
    pieces: (call) =>
      // The prompt is counted with the first image.
      answersOf(call).map((index) => {
        const inputTokens = index === 0 ? call.inputTokens : 0
        const usage = reported(call, () => pictureReport(inputTokens, 1))
        return {
          text: event('image_generation.completed', { b64_json: 'aGk=', ...usage }),
          usage: pictureUsage(inputTokens),
        }
      }),
    whole: (call) => ({
      created: 1,
      data: answersOf(call).map(() => ({ b64_json: 'aGk=' })),
      ...reported(call, ({ inputTokens, count }) => pictureReport(inputTokens, count)),
    }),
  },
  speech: {
    streamBytes: () => 200 + 4 * SOUND.length,
    pieces: ({ plan }) => [
      { text: '', usage: { characters: plan.prompt.length } },
      { text: soundEvent(SOUND) },
      { text: soundEvent(SOUND) },
      { text: soundEvent(SOUND) },
      { text: soundEvent(SOUND, 'stop') },
    ],
    whole: () => ({}),
  },
  transcriptions: {
    streamBytes: ({ tokens, tokensPerChunk }) => 300 + (tokens.length / tokensPerChunk) * 60 + tokens.length * 4.2,
    pieces: (call) => [
      { text: '', usage: { audioSeconds: call.plan.seconds } },
      ...textPieces(call, (delta) => data({ type: 'transcript.text.delta', delta }), 0),
      { text: data({ type: 'transcript.text.done', text: call.tokens.join(''), ...reported(call, lengthReport) }) },
    ],
    whole: (call) => ({ text: call.tokens.join(''), ...reported(call, lengthReport) }),
  },
}

/** Returns the bill of a whole answer. */
export function wholeUsage(pieces: readonly Piece[]): Usage {
  return pieces.reduce<Usage>((sum, { usage }) => (usage === undefined ? sum : addUsage(sum, usage)), {})
}

/** Returns the bill of what a vendor makes before the first byte of a stream. */
export function usageBeforeText(pieces: readonly Piece[]): Usage {
  return wholeUsage(
    pieces.slice(
      0,
      pieces.findIndex(({ text }) => text !== ''),
    ),
  )
}

function answersOf({ count }: AnsweredCall): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

function reported(call: AnsweredCall, usage: (call: AnsweredCall) => object): { readonly usage?: object } {
  return call.isReported ? { usage: usage(call) } : {}
}

function tierOf({ tier }: ExitPlan): object {
  return tier === undefined ? {} : { service_tier: tier.used }
}

/** Text of one token after the other. Each of the answers has it. */
function textPieces(call: AnsweredCall, write: (text: string) => string, answers = 1): Piece[] {
  const { tokens, plan } = call
  const pieces: Piece[] = []
  for (let index = 0; index < tokens.length; index += plan.tokensPerChunk) {
    const part = tokens.slice(index, index + plan.tokensPerChunk)
    const text = write(part.join(''))
    pieces.push(answers === 0 ? { text } : { text, usage: { outputTokens: part.length * answers } })
  }
  return pieces
}

/** Reasoning takes as long as text, and nobody sees it. */
function unseen({ hiddenTokens, tokensPerChunk }: ExitPlan, answers: number): Piece[] {
  return Array.from({ length: Math.ceil(hiddenTokens / tokensPerChunk) }, (_, index) => ({
    text: '',
    usage: { outputTokens: Math.min(tokensPerChunk, hiddenTokens - index * tokensPerChunk) * answers },
  }))
}

function chatReport({ plan, inputTokens, tokens, count }: AnsweredCall): object {
  const output = (tokens.length + plan.hiddenTokens) * count
  return {
    prompt_tokens: inputTokens,
    completion_tokens: output,
    total_tokens: inputTokens + output,
    completion_tokens_details: { reasoning_tokens: plan.hiddenTokens * count },
  }
}

function responseBody(call: AnsweredCall) {
  const { plan, inputTokens, tokens } = call
  const output = tokens.length + plan.hiddenTokens
  const content = [{ type: 'output_text', text: tokens.join(''), annotations: [], logprobs: [] }]
  return {
    id: `resp_exit${plan.id}`,
    object: 'response',
    created_at: 1_795_132_800,
    status: 'completed',
    model: 'm',
    output: [{ type: 'message', id: `msg_exit${plan.id}`, role: 'assistant', status: 'completed', content }] as const,
    ...reported(call, () => ({
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: plan.hiddenTokens },
      total_tokens: inputTokens + output,
    })),
  }
}

function rankedTokens({ inputTokens, count }: AnsweredCall): number {
  return inputTokens * 2 * count
}

function lengthReport({ plan }: AnsweredCall): object {
  return { type: 'duration', seconds: plan.seconds }
}

function pictureUsage(inputTokens: number): Usage {
  return { inputTokens, images: 1, outputTokens: PICTURE_TOKENS, outputImageTokens: PICTURE_TOKENS }
}

function pictureReport(inputTokens: number, images: number): object {
  return {
    input_tokens: inputTokens,
    output_tokens: images * PICTURE_TOKENS,
    total_tokens: inputTokens + images * PICTURE_TOKENS,
    input_tokens_details: { image_tokens: 0, text_tokens: inputTokens },
  }
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function event(type: string, members: object): string {
  return `event: ${type}\n${data({ type, ...members })}`
}
