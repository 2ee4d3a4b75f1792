import { asList, asObject, asText, isGiven } from '../request-fields.ts'

type Json = Record<string, unknown>
type Request = Readonly<Json>

/** How the stand-in of one server deviates from OpenAI's chat. */
export interface PresetScript {
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
export function unlistedField(preset: string, request: Request): string | undefined {
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
export const PRESET_SCRIPTS: Readonly<Record<string, PresetScript>> = {
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
