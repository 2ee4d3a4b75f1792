import { type Preset, presets } from '../../../vendors/presets/presets.ts'
import { type ChatTurn, chatTurn } from '../model/chat-turn.ts'
import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import {
  moderationInputs,
  moderationPromptText,
  moderationScores,
  OPENAI_ERRORS,
  OPENAI_HEADERS,
  refuseInput,
  refuseOpenai,
} from '../openai/openai.ts'
import { answerResponses, responsesPromptText } from '../openai/openai-responses.ts'
import {
  COMPATIBLE_DIALECT,
  chatAnswer,
  checkChatRequest,
  dialectUsage,
  readChatPrompt,
  tokenLimit,
} from '../openai-dialect/chat.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  bearerAccess,
  eventText,
  jsonReply,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
  vendorOperations,
} from '../sandbox-operation.ts'

const PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?(\/.+)$/
const checkBearer = bearerAccess(OPENAI_ERRORS)

/** Returns the preset of a path, and the rest of the path. */
function presetIn(path: string): [preset?: Preset, rest?: string] {
  const [, id = '', rest = ''] = PATH.exec(path) ?? []
  return Object.hasOwn(presets, id) ? [presets[id as keyof typeof presets], rest] : []
}

/** Returns a condition for the paths of servers with an endpoint. */
function serves(endpoint: Preset['serves'][number]) {
  return ({ path }: { readonly path: string }) => presetIn(path)[0]?.serves.includes(endpoint) === true
}

/** Returns a pattern for a path of any server of `signalbox/presets`: `/presets/ID`, the version of its API, and the rest. */
function presetPath(rest: string): RegExp {
  return new RegExp(`^/presets/([a-z0-9-]+)(?:/v\\d+)?${rest}$`)
}

const presetOperation = vendorOperations({
  vendor: 'presets',
  errors: OPENAI_ERRORS,
  access(call) {
    if (presetIn(call.path)[0]?.needsKey === true) checkBearer(call)
  },
})

/** `POST /presets/ID/v1/chat/completions`. The scripts below decide how each server answers, rejects and deviates. */
const PRESET_CHAT = presetOperation({
  operation: 'chat',
  post: presetPath('/chat/completions'),
  when: ({ path }) => presetIn(path)[0] !== undefined,
  prompt: (request) => readChatPrompt(request).lastUserText,
  answer(_call, context, request, [id = '']) {
    const script: PresetScript = PRESET_SCRIPTS[id] ?? {}
    checkChatRequest(request, refuseOpenai)
    const refusal = script.refuses?.(request) ?? unlistedField(id, request)
    if (refusal !== undefined) refuseOpenai(refusal, null)
    const effort = asText(request['reasoning_effort'])
    const bounds =
      script.hasThinkingBudget === true
        ? {
            reasoning: request['enable_thinking'] !== false,
            maxTokens: undefined,
            answerTokens: asNumber(request['max_tokens']),
            thinkingTokens: asNumber(request['thinking_budget']),
          }
        : { reasoning: effort !== '' && effort !== 'none', maxTokens: tokenLimit(request) }
    const turn = chatTurn({ ...readChatPrompt(request), ...bounds }, context)
    // All words of reasoning in one chunk, as servers write it that put it into a form of their own.
    const joined = { ...turn, reasoning: turn.reasoning.length === 0 ? [] : [turn.reasoning.join('')] }
    const reportsAnyway = script.alwaysReportsUsage === true && request['stream'] === true
    const asked = reportsAnyway ? { ...request, stream_options: { include_usage: true } } : request
    return edited(chatAnswer(asked, joined, context, COMPATIBLE_DIALECT, []), script)
  },
})

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

/** How the stand-in of one server deviates from OpenAI's chat. */
interface PresetScript {
  /** Returns the reason for a 400 if the server would reject the request. */
  refuses?(request: Fields): string | undefined
  /** Edits a whole answer, or one chunk, in place. */
  edits?(body: Json): void
  /** Whether every stream contains usage, even if not requested. */
  readonly alwaysReportsUsage?: boolean
  /** Whether models think unless `enable_thinking` is `false`, and `max_tokens` limits the answer without its thinking. */
  readonly hasThinkingBudget?: boolean
}

const turns = (request: Fields, role: string): Json[] =>
  asList(request['messages'])
    .map((message) => ({ ...asObject(message) }))
    .filter((message) => message['role'] === role)

/** Members of OpenAI's chats, or of routers, that servers with a strict schema reject. */
const REJECTED_MEMBERS = ['store', 'safety_identifier', 'prompt_cache_retention', 'verbosity', 'metadata'] as const

/** Returns the reason for a 400 if a request has the session that routers read, and the server's reference does not list it. */
function unlistedField(preset: string, request: Fields): string | undefined {
  return preset === 'openrouter' ? undefined : setField(request, ['session_id'])
}

/** The first of these fields that a request sets. */
function setField(request: Fields, fields: readonly string[]): string | undefined {
  const found = fields.find((field) => isGiven(request[field]) && request[field] !== false)
  return found === undefined ? undefined : `property '${found}' is unsupported`
}

function foreignMember(request: Fields, members: readonly string[]): string | undefined {
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

function lacksReasoning(request: Fields, isDue: (turn: Json) => boolean): string | undefined {
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

/** Servers that rerank: `POST /presets/ID/v1/rerank`. */
const PRESET_RERANK = presetOperation({
  operation: 'rerank',
  post: presetPath('/rerank'),
  when: ({ path }) => presetIn(path)[0] !== undefined,
  prompt: rankingPromptText,
  json(call, context, request) {
    checkBearer(call)
    const query = asText(request['query'])
    const texts = rankedTexts(request['documents'])
    if (query === '' || texts === undefined) refuseOpenai('query and documents must not be empty', 'documents')
    return {
      model: asText(request['model']),
      object: 'list',
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
      // By default these servers repeat the documents.
      results: ranking(query, texts, request['top_n'], request['return_documents'] !== false),
    }
  },
})

/** Mistral's own categories, which differ from OpenAI's (Mistral, "Moderation"). */
const MISTRAL_CATEGORIES =
  'sexual hate_and_discrimination violence_and_threats dangerous_and_criminal_content selfharm health financial law pii'

/** Servers that moderate: `POST /presets/ID/v1/moderations`. Text only, without an overall flag. */
const PRESET_MODERATIONS = presetOperation({
  operation: 'moderations',
  post: presetPath('/moderations'),
  when: serves('moderations'),
  prompt: moderationPromptText,
  answer(_call, context, { input, model }) {
    const given = moderationInputs(input)
    if (!given.every((text) => typeof text === 'string')) refuseInput()
    const results = given.map((text) => moderationScores(MISTRAL_CATEGORIES.split(' '), text, context))
    return jsonReply(200, OPENAI_HEADERS, { id: context.id, model, results })
  },
})

/** Servers with Responses: `POST /presets/ID/v1/responses`. Servers that store no answers reject storing. */
const PRESET_RESPONSES = presetOperation({
  operation: 'responses',
  post: presetPath('/responses'),
  when: serves('responses'),
  prompt: responsesPromptText,
  answer(call, context, request) {
    const { keepsAnswers = false, fields = {} } = presetIn(call.path)[0]?.responses ?? {}
    const isSet = (field: string): boolean => request[field] !== undefined && request[field] !== false
    const kept = ['store', 'previous_response_id'].find(isSet)
    if (!keepsAnswers && kept !== undefined) refuseOpenai(`${kept} is not supported: no state is kept.`, kept)
    const dropped = Object.keys(fields).find((field) => request[field] !== undefined)
    if (dropped !== undefined) refuseOpenai(`${dropped} is not supported`, dropped)
    return answerResponses(call, context, request)
  },
})

/** Members that servers reject, although OpenAI's API has them; of Mistral everything that its reference does not have. */
const REJECTED: Readonly<Record<string, RegExp>> = {
  llamacpp: /^(?:best_of|suffix)$/,
  vllm: /^suffix$/,
  mistral: /^(?!(?:model|prompt|suffix|temperature|top_p|max_tokens|min_tokens|stream|stop|random_seed|metadata)$)/,
}

/**
 * Servers that complete texts: `POST /presets/ID/v1/completions`, or the path of the preset. A completion says
 * what a chat would say to the prompt. It follows the prompt if `echo` is true.
 */
const PRESET_COMPLETIONS = presetOperation({
  operation: 'completions',
  post: PATH,
  when({ path }) {
    const [preset, rest] = presetIn(path)
    return preset?.serves.includes('completions') === true && rest === (preset.completions?.path ?? '/completions')
  },
  prompt: (request) => promptsOf(request).map(String).join('\n'),
  answer({ path }, context, request) {
    const preset = presetIn(path)[0]!
    const refusal = refusalOf(preset, request)
    if (refusal !== undefined) refuseOpenai(refusal, null)
    return completionReply(preset, request, context)
  },
})

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

/** A prompt is read once, and each completion that is made counts, whether it is sent or not. */
function completionReply({ completions }: Preset, request: Fields, context: AnswerContext): SandboxReply {
  const isChat = completions?.answersAsChat === true
  const count = asNumber(request['n']) ?? 1
  const isStream = request['stream'] === true
  const made = promptsOf(request).flatMap((prompt) => {
    const turn = turnOf(prompt, request, context)
    const words = [...(request['echo'] === true ? [String(prompt)] : []), ...turn.words]
    return Array.from({ length: count }, () => ({ words, finish: finishReason(turn), usage: turn.usage }))
  })
  const head = {
    id: `cmpl-${context.id}`,
    object: isChat ? `chat.completion${isStream ? '.chunk' : ''}` : 'text_completion',
    created: Math.floor(context.nowMs / 1000),
    model: asText(request['model']),
  }
  const choice = (index: number, text: string, finish: string | null): object =>
    isChat
      ? { index, [isStream ? 'delta' : 'message']: { role: 'assistant', content: text }, finish_reason: finish }
      : { index, text, logprobs: null, finish_reason: finish }
  const sum = (of: 'prompt' | 'cached' | 'completion'): number =>
    made.reduce((total, { usage }) => total + usage[of], 0) / count
  const completion = sum('completion') * Math.max(count, asNumber(request['best_of']) ?? 1)
  const counts = { prompt: sum('prompt'), cached: sum('cached'), cacheWrite: 0, completion, reasoning: 0 }
  const usage = context.usage(dialectUsage(counts, COMPATIBLE_DIALECT))
  if (!isStream) {
    const choices = made.map(({ words, finish }, index) => choice(index, words.join(''), finish))
    return jsonReply(200, [], { ...head, choices, usage })
  }
  const wantsUsage = asObject(request['stream_options'])['include_usage'] === true
  const chunk = (index: number, text: string, finish: string | null): object => ({
    ...head,
    choices: [choice(index, text, finish)],
    ...(wantsUsage ? { usage: null } : {}),
    ...(isChat && finish !== null && index === made.length - 1 ? { usage } : {}),
  })
  const chunks = made.flatMap(({ words, finish }, index) => [
    ...words.map((word) => chunk(index, word, null)),
    chunk(index, '', finish),
  ])
  if (wantsUsage && usage !== undefined) chunks.push({ ...head, choices: [], usage })
  const events = [...chunks.map((event) => eventText(event)), 'data: [DONE]\n\n']
  return streamReply([], events, eventText({ ...head, choices: [choice(0, ' more', null)] }))
}

function finishReason({ ending }: ChatTurn): string {
  return ending === 'blocked' ? 'content_filter' : ending === 'length' ? 'length' : 'stop'
}

/** Operations of the servers of `signalbox/presets`, except transcriptions. */
export const PRESET_OPERATIONS: readonly SandboxOperation[] = [
  PRESET_CHAT,
  PRESET_COMPLETIONS,
  PRESET_RESPONSES,
  PRESET_RERANK,
  PRESET_MODERATIONS,
]
