import { type Preset, presets } from '../../../vendors/presets/presets.ts'
import { type ChatTurn, chatTurn } from '../model/chat-turn.ts'
import { OPENAI_ERRORS, openaiInvalid } from '../openai/openai-errors.ts'
import { COMPATIBLE_DIALECT } from '../openai-dialect/chat-answer.ts'
import { readChatPrompt } from '../openai-dialect/chat-request.ts'
import { asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  streamReply,
} from '../sandbox-operation.ts'

const PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?(\/.+)$/

/** Members that servers reject, although OpenAI's API has them; of Mistral everything that its reference does not have. */
const REJECTED: Readonly<Record<string, RegExp>> = {
  llamacpp: /^(?:best_of|suffix)$/,
  vllm: /^suffix$/,
  mistral: /^(?!(?:model|prompt|suffix|temperature|top_p|max_tokens|min_tokens|stream|stop|random_seed|metadata)$)/,
}

/**
 * Servers of `signalbox/presets` that complete texts: `POST /presets/ID/v1/completions`, or the path of the preset. A completion says
 * what a chat would say to the prompt. It follows the prompt if `echo` is true.
 */
export const PRESET_COMPLETIONS: SandboxOperation = {
  vendor: 'presets',
  operation: 'completions',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && servingPreset(path) !== undefined,
  promptText: (body) => promptsOf(asObject(body)).map(String).join('\n'),
  answer(call, context) {
    const preset = servingPreset(call.path)!
    if (preset.needsKey) checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    const refusal = refusalOf(preset, request)
    if (refusal !== undefined) throw new RefusedCall(openaiInvalid(refusal, null))
    const turns = promptsOf(request).map((prompt) => turnOf(prompt, request, context))
    const answer = new CompletionAnswer(preset, request, turns, context)
    return request['stream'] === true
      ? streamReply([], answer.events(), answer.filler())
      : jsonReply(200, [], answer.whole())
  },
}

function servingPreset(path: string): Preset | undefined {
  const [, id, rest] = PATH.exec(path) ?? []
  const preset = Object.values<Preset>(presets).find((candidate) => candidate.id === id)
  return preset?.serves.includes('completions') && rest === (preset.completions?.path ?? '/completions')
    ? preset
    : undefined
}

/** Texts, or the ids of tokens. */
function promptsOf({ prompt }: Fields): readonly unknown[] {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt : [prompt]
}

function refusalOf({ id, completions = {} }: Preset, request: Fields): string | undefined {
  const { models, takesLists = true, maxTokens = Number.POSITIVE_INFINITY } = completions
  if (models?.test(asText(request['model'])) === false) return 'This model does not support completions.'
  if (typeof request['prompt'] !== 'string' && !(takesLists && Array.isArray(request['prompt'])))
    return 'prompt: Input should be a valid string'
  if ((asNumber(request['max_tokens']) ?? 1) > maxTokens)
    return `Invalid max_tokens value, the valid range of max_tokens is [1, ${maxTokens}]`
  const rejected = Object.keys(request).find((name) => isGiven(request[name]) && REJECTED[id]?.test(name))
  return rejected === undefined ? undefined : `${rejected}: Extra inputs are not permitted`
}

function turnOf(prompt: unknown, request: Fields, context: AnswerContext): ChatTurn {
  const content = String(prompt)
  const messages = [{ role: 'user', content }]
  const read = readChatPrompt({ messages, stop: request['stop'] })
  const texts = [content, asText(request['suffix'])]
  return chatTurn({ ...read, texts, reasoning: false, maxTokens: asNumber(request['max_tokens']) }, context)
}

class CompletionAnswer {
  readonly #isChat: boolean
  readonly #request: Fields
  readonly #context: AnswerContext
  readonly #turns: readonly ChatTurn[]
  readonly #prompts: readonly unknown[]

  constructor({ completions }: Preset, request: Fields, turns: readonly ChatTurn[], context: AnswerContext) {
    this.#isChat = completions?.answersAsChat === true
    this.#request = request
    this.#context = context
    const count = asNumber(request['n']) ?? 1
    this.#turns = turns.flatMap((turn) => Array.from({ length: count }, () => turn))
    this.#prompts = promptsOf(request).flatMap((prompt) => Array.from({ length: count }, () => prompt))
  }

  whole(): object {
    const choices = this.#turns.map((turn, index) =>
      this.#choice(index, [...this.#echoed(index), ...turn.words].join(''), finishReason(turn), 'message'),
    )
    return { ...this.#head('chat.completion'), choices, usage: this.#usage() }
  }

  events(): string[] {
    const head = this.#head('chat.completion.chunk')
    const wantsUsage = asObject(this.#request['stream_options'])['include_usage'] === true
    const chunk = (index: number, text: string, finish: string | null): object => ({
      ...head,
      choices: [this.#choice(index, text, finish, 'delta')],
      ...(wantsUsage ? { usage: null } : {}),
      ...(this.#isChat && finish !== null && index === this.#turns.length - 1 ? { usage: this.#usage() } : {}),
    })
    const chunks = this.#turns.flatMap((turn, index) => [
      ...[...this.#echoed(index), ...turn.words].map((word) => chunk(index, word, null)),
      chunk(index, '', finishReason(turn)),
    ])
    const usage = wantsUsage ? this.#usage() : undefined
    if (usage !== undefined) chunks.push({ ...head, choices: [], usage })
    return [...chunks.map(eventOf), 'data: [DONE]\n\n']
  }

  /** Piece that an endless stream repeats. */
  filler(): string {
    return eventOf({ ...this.#head('chat.completion.chunk'), choices: [this.#choice(0, ' more', null, 'delta')] })
  }

  #echoed(index: number): string[] {
    return this.#request['echo'] === true ? [String(this.#prompts[index])] : []
  }

  #choice(index: number, text: string, finish: string | null, member: 'message' | 'delta'): object {
    return this.#isChat
      ? { index, [member]: { role: 'assistant', content: text }, finish_reason: finish }
      : { index, text, logprobs: null, finish_reason: finish }
  }

  #head(chatObject: string): object {
    const { id, nowMs } = this.#context
    const object = this.#isChat ? chatObject : 'text_completion'
    return { id: `cmpl-${id}`, object, created: Math.floor(nowMs / 1000), model: asText(this.#request['model']) }
  }

  /** A prompt is read once, and each completion that is made counts, whether it is sent or not. */
  #usage(): object | undefined {
    const count = asNumber(this.#request['n']) ?? 1
    const made = Math.max(count, asNumber(this.#request['best_of']) ?? 1)
    const sum = (of: (turn: ChatTurn) => number): number =>
      this.#turns.reduce((total, turn) => total + of(turn), 0) / count
    return this.#context.usage(
      COMPATIBLE_DIALECT.usage({
        prompt: sum(({ usage }) => usage.prompt),
        cached: sum(({ usage }) => usage.cached),
        cacheWrite: 0,
        completion: sum(({ usage }) => usage.completion) * made,
        reasoning: 0,
      }),
    )
  }
}

function eventOf(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function finishReason({ ending }: ChatTurn): string {
  return ending === 'blocked' ? 'content_filter' : ending === 'length' ? 'length' : 'stop'
}
