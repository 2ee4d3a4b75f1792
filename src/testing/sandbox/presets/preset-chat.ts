import { type Preset, presets } from '../../../vendors/presets/presets.ts'
import { type ChatTurn, chatTurn } from '../model/chat-turn.ts'
import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import { OPENAI_ERRORS, openaiInvalid } from '../openai/openai-models.ts'
import { COMPATIBLE_DIALECT, chatAnswer, checkChatRequest, readChatPrompt, tokenLimit } from '../openai-dialect/chat.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'

const CHAT_PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/chat\/completions$/

/**
 * The servers of `signalbox/presets`: `POST /presets/ID/v1/chat/completions`. Their scripts decide how they answer, reject and
 * deviate.
 */
export const PRESET_CHAT: SandboxOperation = {
  vendor: 'presets',
  operation: 'chat',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && Object.hasOwn(presets, CHAT_PATH.exec(path)?.[1] ?? ''),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    const id = CHAT_PATH.exec(call.path)?.[1] as keyof typeof presets
    const script: PresetScript = PRESET_SCRIPTS[id] ?? {}
    if (presets[id].needsKey) checkBearer(call, OPENAI_ERRORS)
    checkChatRequest(call.body, openaiInvalid)
    const request = asObject(call.body)
    const refusal = script.refuses?.(request) ?? unlistedField(id, request)
    if (refusal !== undefined) throw new RefusedCall(openaiInvalid(refusal, null))
    const effort = asText(request['reasoning_effort'])
    const hasBudget = script.hasThinkingBudget === true
    const reasoning = hasBudget ? request['enable_thinking'] !== false : effort !== '' && effort !== 'none'
    const bounds = hasBudget
      ? {
          maxTokens: undefined,
          answerTokens: asNumber(request['max_tokens']),
          thinkingTokens: asNumber(request['thinking_budget']),
        }
      : { maxTokens: tokenLimit(request) }
    const turn = chatTurn({ ...readChatPrompt(request), reasoning, ...bounds }, context)
    // All words of reasoning in one chunk, as servers write it that put it into a form of their own.
    const joined = { ...turn, reasoning: turn.reasoning.length === 0 ? [] : [turn.reasoning.join('')] }
    const asked =
      script.alwaysReportsUsage === true && request['stream'] === true
        ? { ...request, stream_options: { include_usage: true } }
        : request
    return edited(chatAnswer(asked, joined, context, COMPATIBLE_DIALECT, []), script)
  },
}

/** The reply with each JSON text in it edited. */
function edited(reply: SandboxReply, { edits }: PresetScript): SandboxReply {
  if (edits === undefined) return reply
  const pieces = reply.pieces.map((piece) => {
    const [prefix, text] = reply.streamed ? ['data: ', String(piece).slice('data: '.length)] : ['', String(piece)]
    if (!text.startsWith('{')) return piece
    const body = JSON.parse(text) as Record<string, unknown>
    edits(body)
    return reply.streamed ? `${prefix}${JSON.stringify(body)}\n\n` : JSON.stringify(body)
  })
  return { ...reply, pieces }
}

type Json = Record<string, unknown>
type Request = Readonly<Json>

/** How the stand-in of one server deviates from OpenAI's chat. */
interface PresetScript {
  /** Returns the reason for a 400 if the server would reject the request. */
  refuses?(request: Request): string | undefined
  /** Edits a whole answer, or one chunk, in place. */
  edits?(body: Json): void
  /** Whether every stream contains usage, even if not requested. */
  readonly alwaysReportsUsage?: boolean
  /** Whether models think unless `enable_thinking` is `false`, and `max_tokens` limits the answer without its thinking. */
  readonly hasThinkingBudget?: boolean
}

const turns = (request: Request, role: string): Json[] =>
  asList(request['messages'])
    .map((message) => ({ ...asObject(message) }))
    .filter((message) => message['role'] === role)

/** Members of OpenAI's chats, or of routers, that servers with a strict schema reject. */
const REJECTED_MEMBERS = ['store', 'safety_identifier', 'prompt_cache_retention', 'verbosity', 'metadata'] as const

/** Returns the reason for a 400 if a request has the session that routers read, and the server's reference does not list it. */
function unlistedField(preset: string, request: Request): string | undefined {
  return preset === 'openrouter' ? undefined : setField(request, ['session_id'])
}

/** The first of these fields that a request sets. */
function setField(request: Request, fields: readonly string[]): string | undefined {
  const found = fields.find((field) => isGiven(request[field]) && request[field] !== false)
  return found === undefined ? undefined : `property '${found}' is unsupported`
}

function foreignMember(request: Request, members: readonly string[]): string | undefined {
  for (const message of asList(request['messages']).map(asObject)) {
    const foreign = Object.keys(message).find((name) => !members.includes(name))
    if (foreign !== undefined) return `'messages' : property '${foreign}' is unsupported`
  }
  return undefined
}

/** Returns Moonshot's error for a schema with a type next to its branches. */
function untypedBranches(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map(untypedBranches).find((fault) => fault !== undefined)
  const schema = asObject(value)
  if (Array.isArray(schema['anyOf']) && typeof schema['type'] === 'string')
    return "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'root': when using anyOf, type should be defined in anyOf items instead of the parent schema>"
  return untypedBranches(Object.values(schema).filter((member) => typeof member === 'object'))
}

function lacksReasoning(request: Request, isDue: (turn: Json) => boolean): string | undefined {
  return turns(request, 'assistant').some((turn) => isDue(turn) && typeof turn['reasoning_content'] !== 'string')
    ? 'The `reasoning_content` in the thinking mode must be passed back to the API.'
    : undefined
}

/** Returns the messages of a whole answer, or the deltas of a chunk. */
function parts(body: Json): Json[] {
  return asList(body['choices']).flatMap((choice) => {
    const { message, delta } = choice as Json
    return [message, delta].filter((part) => typeof part === 'object' && part !== null) as Json[]
  })
}

function renameReasoning(body: Json): void {
  for (const part of parts(body)) {
    if (part['reasoning_content'] === undefined) continue
    part['reasoning'] = part['reasoning_content']
    delete part['reasoning_content']
  }
}

const usageOf = (body: Json): Json | undefined =>
  typeof body['usage'] === 'object' && body['usage'] !== null ? (body['usage'] as Json) : undefined

/** Servers that deviate, by the id of their preset. All others answer like OpenAI. */
const PRESET_SCRIPTS: Readonly<Record<string, PresetScript>> = {
  groq: {
    refuses: (request) =>
      (/^llama/.test(asText(request['model'])) ? setField(request, ['reasoning_effort']) : undefined) ??
      setField(request, ['logprobs', 'top_logprobs', 'logit_bias', 'max_completion_tokens', ...REJECTED_MEMBERS]) ??
      (Number(request['n'] ?? 1) > 1 ? "'n' : number must be at most 1" : undefined) ??
      foreignMember(request, ['role', 'content', 'tool_calls', 'tool_call_id', 'reasoning']),
    edits: renameReasoning,
  },
  deepseek: {
    refuses(request) {
      const model = asText(request['model'])
      if (model === 'deepseek-reasoner')
        return foreignMember(request, ['role', 'content', 'name', 'tool_calls', 'tool_call_id'])
      // Models before V4 do not read reasoning again.
      return /^deepseek-(?:chat|coder)$/.test(model) ? undefined : lacksReasoning(request, () => true)
    },
    edits(body) {
      const usage = usageOf(body)
      if (usage !== undefined)
        usage['prompt_cache_hit_tokens'] = asObject(usage['prompt_tokens_details'])['cached_tokens']
    },
  },
  moonshot: {
    refuses: (request) =>
      lacksReasoning(request, (turn) => asList(turn['tool_calls']).length > 0) ??
      (/"url":"https?:/.test(JSON.stringify(request['messages'])) ? 'unsupported image url' : undefined) ??
      untypedBranches(request['tools']),
    edits(body) {
      const usage = usageOf(body)
      if (usage === undefined) return
      usage['cached_tokens'] = asObject(usage['prompt_tokens_details'])['cached_tokens']
      delete usage['prompt_tokens_details']
    },
  },
  mistral: {
    alwaysReportsUsage: true,
    refuses(request) {
      const ids = [
        ...turns(request, 'assistant').flatMap((turn) =>
          asList(turn['tool_calls']).map((call) => asObject(call)['id']),
        ),
        ...turns(request, 'tool').map((turn) => turn['tool_call_id']),
      ]
      if (!ids.every((id) => /^[a-zA-Z0-9]{9}$/.test(asText(id))))
        return 'Tool call id must be a-z, A-Z, 0-9, with a length of 9.'
      return setField(request, ['seed', 'max_completion_tokens', 'stream_options', 'user', ...REJECTED_MEMBERS])
    },
    edits(body) {
      for (const part of parts(body)) {
        for (const call of asList(part['tool_calls'])) {
          const piece = call as Json
          delete piece['type']
          // A call arrives in one chunk. The stand-in's later chunks keep the index, as they do since 2026-08.
          if (isGiven(piece['id'])) delete piece['index']
        }
        const thinking = part['reasoning_content']
        if (typeof thinking !== 'string') continue
        const text = asText(part['content'])
        delete part['reasoning_content']
        part['content'] = [
          { type: 'thinking', thinking: [{ type: 'text', text: thinking }] },
          ...(text === '' ? [] : [{ type: 'text', text }]),
        ]
      }
    },
  },
  xai: {
    // "Model grok-4 does not support parameter reasoningEffort."
    refuses: (request) =>
      /^grok-4(?!\.[3-9])/.test(asText(request['model'])) ? setField(request, ['reasoning_effort', 'stop']) : undefined,
    edits(body) {
      const usage = usageOf(body)
      const reasoning = asObject(usage?.['completion_tokens_details'])['reasoning_tokens']
      if (usage !== undefined && typeof reasoning === 'number')
        usage['completion_tokens'] = Number(usage['completion_tokens']) - reasoning
    },
  },
  siliconflow: {
    hasThinkingBudget: true,
    refuses({ thinking_budget: budget }) {
      const isInRange = !isGiven(budget) || (Number(budget) >= 128 && Number(budget) <= 32_768)
      return isInRange ? undefined : 'thinking_budget must be from 128 to 32768'
    },
  },
  minimax: { edits: (body) => tagReasoning(body) },
  sambanova: {
    edits(body) {
      body['created'] = Number(body['created']) + 0.25
    },
  },
  nvidia: {
    refuses: (request) =>
      setField(request, ['store', 'metadata', 'user', 'service_tier', 'prompt_cache_key', 'verbosity']) ??
      foreignMember(request, ['role', 'content', 'name', 'tool_calls', 'tool_call_id']),
  },
  cerebras: { refuses: (request) => setField(request, ['max_tokens', ...REJECTED_MEMBERS]), edits: renameReasoning },
  ollama: {
    refuses: (request) =>
      /"url":"https?:/.test(JSON.stringify(request['messages'])) ? 'invalid image input' : undefined,
    edits: renameReasoning,
  },
  vllm: { edits: renameReasoning },
}

/** Moves reasoning to the start of the content. The stand-in writes it in one chunk, so the tags stay together. */
function tagReasoning(body: Json): void {
  for (const part of parts(body)) {
    const thinking = part['reasoning_content']
    if (typeof thinking !== 'string') continue
    delete part['reasoning_content']
    part['content'] = `<think>${thinking}</think>\n\n${asText(part['content'])}`
  }
}

const RERANK_PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/rerank$/

/** The servers of `signalbox/presets` that rerank: `POST /presets/ID/v1/rerank`. */
export const PRESET_RERANK: SandboxOperation = {
  vendor: 'presets',
  operation: 'rerank',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && Object.hasOwn(presets, RERANK_PATH.exec(path)?.[1] ?? ''),
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    const query = asText(request['query'])
    const texts = rankedTexts(request['documents'])
    if (query === '' || texts === undefined)
      throw new RefusedCall(openaiInvalid('query and documents must not be empty', 'documents'))
    return jsonReply(200, [], {
      model: asText(request['model']),
      object: 'list',
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
      // By default these servers repeat the documents.
      results: ranking(query, texts, request['top_n'], request['return_documents'] !== false),
    })
  },
}

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
