import { createHash } from 'node:crypto'
import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { CompletionRequest } from '../../endpoints/completions/completion-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ResponsesRequest } from '../../endpoints/responses/responses-request.ts'
import { invalidParameter, unsupportedParameter } from '../shared/invalid-response.ts'
import {
  type FieldMapping,
  type FieldRule,
  type FieldRules,
  hasExtensions,
  ROUTING_RULES,
  withoutExtensions,
} from '../shared/openai-chat-dialect.ts'
import type { Preset, PresetDialect, PresetReasoning, PresetRule, PresetToolChoice } from '../shared/preset.ts'

/** Returns the chat rules of a preset by the vendor's own model id. They are compiled here, once. */
export function presetRules(preset: Preset): (upstream: string) => FieldRules<ChatRequest> {
  const base = compiled(preset)
  const byModel = (preset.byModel ?? []).map(
    ([pattern, dialect]) =>
      [pattern, compiled({ ...preset, ...dialect, fields: { ...preset.fields, ...dialect.fields } })] as const,
  )
  if (byModel.length === 0) return () => base
  return (upstream) => byModel.find(([pattern]) => pattern.test(upstream))?.[1] ?? base
}

/** Returns the names of chat fields that are not sent to a server. Their surcharges do not apply. */
export function droppedFields({ fields = {} }: Preset): ReadonlySet<string> {
  return new Set(Object.keys(fields).filter((field) => fields[field] === 'drop'))
}

/** Returns whether a model of a preset, by the vendor's own id, receives the text of its reasoning again. */
export function replaysReasoning({ reasoning, byModel = [] }: Preset): (upstream: string) => boolean {
  return (upstream) => {
    const dialect = byModel.find(([pattern]) => pattern.test(upstream))?.[1]
    const { back } = dialect?.reasoning ?? reasoning ?? { back: 'never' }
    return back !== 'never'
  }
}

/** Returns the Responses rules of a preset. */
export function responsesRules({ responses }: Preset): FieldRules<ResponsesRequest> {
  return { ...ROUTING_RULES, ...rulesOf(responses?.fields) }
}

/** Returns the embeddings rules of a preset. */
export function embeddingsRules({ embeddings }: Preset): FieldRules<EmbeddingsRequest> {
  return rulesOf(embeddings?.fields)
}

/** The rules of a preset for text completions. */
export function completionsRules({ completions }: Preset): FieldRules<CompletionRequest> {
  return rulesOf(completions?.fields)
}

function rulesOf(fields: PresetDialect['fields'] = {}): Record<string, FieldRule<object>> {
  return Object.fromEntries(Object.entries(fields).map(([field, rule]) => [field, fieldRule(field, rule)]))
}

function compiled(dialect: PresetDialect): FieldRules<ChatRequest> {
  const rules: Record<string, FieldRule<ChatRequest>> = {
    messages: messagesMapping(dialect),
    ...(dialect.typedBranches === true ? { tools: typedBranches, response_format: typedBranches } : {}),
    ...ROUTING_RULES,
    ...rulesOf(dialect.fields),
  }
  if (dialect.toolChoice !== undefined) rules['tool_choice'] = toolChoiceMapping(dialect.toolChoice)
  return rules
}

function fieldRule(field: string, rule: PresetRule): FieldRule<object> {
  if (rule === 'pass' || rule === 'drop') return rule
  if (rule === 'refuse') return refusal(field)
  if ('rename' in rule) return renaming(field, rule.rename)
  if ('thinkingBudget' in rule) return sharedBound(field, rule.thinkingBudget)
  if ('values' in rule) return otherValues(field, new Map(Object.entries(rule.values)))
  return {
    needed: (value) => typeof value === 'number' && value > rule.atMost,
    apply: () => {
      throw unsupportedParameter(field, `${field}: this model accepts at most ${rule.atMost}`)
    },
  }
}

/** Rule for schemas of functions and of the answer's format. */
const typedBranches: FieldMapping<ChatRequest> = {
  needed: (value) => withTypedBranches(value) !== value,
  apply: (body, value) => {
    body[Array.isArray(value) ? 'tools' : 'response_format'] = withTypedBranches(value)
  },
}

function refusal(field: string): FieldMapping<object> {
  return {
    needed: () => true,
    apply: (body, value) => {
      if (!asksForNothing(value) && !changesNothing(field, value))
        throw unsupportedParameter(field, `The model does not support ${field}.`)
      delete body[field]
    },
  }
}

function asksForNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isJsonObject(value)) return Object.keys(value).length === 0
  return value === null || value === false || value === 0
}

function renaming(field: string, name: string): FieldMapping<object> {
  return {
    needed: () => true,
    apply: (body, value) => {
      delete body[field]
      const other = body[name]
      if (value === null) return
      body[name] = typeof other === 'number' && typeof value === 'number' ? Math.min(other, value) : (other ?? value)
    },
  }
}

/** Splits a limit between answer and thinking, so that both together stay within it. */
function sharedBound(
  field: string,
  { min, max }: { readonly min: number; readonly max: number },
): FieldMapping<object> {
  return {
    needed: (value, { max_completion_tokens: newer }: { readonly max_completion_tokens?: unknown }) =>
      value !== null && (field === 'max_completion_tokens' || typeof newer !== 'number'),
    apply: (body, value) => {
      const { max_tokens: older, thinking_budget: asked, enable_thinking: enabled } = body
      const bound = Math.min(Number(value), typeof older === 'number' ? older : Number(value))
      delete body[field]
      body['max_tokens'] = bound
      if (enabled === false) return
      const half = Math.min(Math.floor(bound / 2), max)
      if (half < min) {
        delete body['thinking_budget']
        body['enable_thinking'] = false
        return
      }
      const thinking = typeof asked === 'number' && asked >= min && asked < bound ? asked : half
      body['thinking_budget'] = thinking
      body['max_tokens'] = bound - thinking
    },
    losses: (value, request) =>
      Number(value) < 2 * min && 'enable_thinking' in request && request.enable_thinking === true
        ? ['enable_thinking']
        : [],
  }
}

function otherValues(field: string, values: ReadonlyMap<unknown, string>): FieldMapping<object> {
  return {
    needed: (value) => values.has(value),
    apply: (body, value) => {
      body[field] = values.get(value)
    },
    losses: () => [field],
  }
}

/** Returns a list of names and a mode for both forms of a choice that names functions. */
function namedTools(choice: unknown): { readonly names: ReadonlySet<unknown>; readonly mode: string } | undefined {
  if (!isJsonObject(choice)) return undefined
  if (choice['type'] === 'function') return { names: new Set([nameOf(choice)]), mode: 'required' }
  const allowed = choice['allowed_tools']
  if (!isJsonObject(allowed) || !Array.isArray(allowed['tools'])) return undefined
  const { mode } = allowed
  return { names: new Set(allowed['tools'].map(nameOf)), mode: typeof mode === 'string' ? mode : 'auto' }
}

function nameOf(tool: unknown): unknown {
  const definition = isJsonObject(tool) ? tool['function'] : undefined
  return isJsonObject(definition) ? definition['name'] : undefined
}

function toolChoiceMapping({
  required = 'required',
  cutsNamed,
  isIgnored,
}: PresetToolChoice): FieldMapping<ChatRequest> {
  const cuts = cutsNamed === true || isIgnored === true
  const isForced = (choice: unknown): boolean => choice === 'required' || namedTools(choice)?.mode === 'required'
  return {
    needed: (choice) =>
      isIgnored === true || (choice === 'required' && required !== 'required') || (cuts && isJsonObject(choice)),
    apply: (body, choice) => {
      const named = namedTools(choice)
      if (named !== undefined && Array.isArray(body['tools']) && body['tools'].length > 0) {
        const tools = body['tools'].filter((tool) => named.names.has(nameOf(tool)))
        if (tools.length === 0) throw invalidParameter('tool_choice', 'tool_choice: names none of the tools in tools.')
        body['tools'] = tools
      }
      const mode = named?.mode ?? choice
      if (isIgnored === true) {
        delete body['tool_choice']
        if (mode === 'none') delete body['tools']
      } else body['tool_choice'] = mode === 'required' ? required : mode
    },
    // Without the field, nothing forces the model to call.
    losses: (choice) => (isIgnored === true && isForced(choice) ? ['tool_choice'] : []),
  }
}

/** Rewrites one message. Returns the same object if nothing changes. */
type Step = (message: ChatMessage, isLast: boolean) => ChatMessage

/** Adapts the history to a server: reasoning, roles, ids of tool calls and members of messages follow its preset. */
function messagesMapping(dialect: PresetDialect): FieldMapping<ChatRequest> {
  const members = dialect.messageMembers === undefined ? undefined : new Set(dialect.messageMembers)
  const steps: Step[] = [reasoningStep(dialect.reasoning ?? { back: 'never' })]
  if (dialect.takesDeveloperRole !== true) steps.push(withoutDeveloper)
  if (dialect.toolIdLength !== undefined) steps.push(toolIdStep(dialect.toolIdLength))
  if (dialect.prefillMember !== undefined) steps.push(prefillStep(dialect.prefillMember))
  if (members !== undefined) steps.push((message) => withMembers(message, members))
  const rewrite: Step = (message, isLast) => {
    let current = message
    for (let step = 0; step < steps.length; step++) current = steps[step]!(current, isLast)
    return current
  }
  const answers = dialect.answersTools === true
  return {
    // Runs for every request, so it allocates nothing if nothing changes.
    needed: (_value, { messages }) => {
      for (let index = 0; index < messages.length; index++) {
        const message = messages[index]!
        if (answers && followsTool(messages, index)) return true
        if (rewrite(message, index === messages.length - 1) !== message) return true
      }
      return false
    },
    apply: (body, value) => {
      const messages = value as readonly ChatMessage[]
      body['messages'] = messages.flatMap((message, index) => {
        const written = rewrite(message, index === messages.length - 1)
        return answers && followsTool(messages, index) ? [ANSWER_TO_TOOL, written] : [written]
      })
    },
    ...(members === undefined ? {} : { losses: (value) => lostMembers(value as readonly ChatMessage[], members) }),
  }
}

const ANSWER_TO_TOOL: ChatMessage = { role: 'assistant', content: 'OK.' }

function followsTool(messages: readonly ChatMessage[], index: number): boolean {
  return messages[index]!.role === 'user' && messages[index - 1]?.role === 'tool'
}

function reasoningStep({ back, as = 'reasoning_content', evenEmpty = false }: PresetReasoning): Step {
  return (message) => {
    const known = reasoningOf(message)
    const isDue =
      message.role === 'assistant' &&
      (back === 'always' || (back === 'tool-calls' && (message.tool_calls?.length ?? 0) > 0))
    const wanted = isDue ? (known ?? (evenEmpty ? '' : undefined)) : undefined
    if (wanted === undefined && !carriesReasoning(message)) return message
    if (as === 'reasoning' && wanted !== undefined && reasoningIs(message, wanted)) return message
    const { reasoning: _reasoning, ...bare }: ReasonedMessage = withoutExtensions(message)
    return wanted === undefined ? bare : { ...bare, [as]: wanted }
  }
}

type ReasonedMessage = ChatMessage & { readonly reasoning?: unknown }

/** Whether a message carries exactly this reasoning in the form that the server accepts. */
function reasoningIs(message: ReasonedMessage, wanted: string): boolean {
  return message.reasoning === wanted && !hasExtensions(message)
}

function carriesReasoning(message: ReasonedMessage): boolean {
  return message.reasoning !== undefined || hasExtensions(message)
}

/** Clients repeat the reasoning of an answer under its original name. */
function reasoningOf(message: ReasonedMessage): string | undefined {
  const text = message.reasoning_content ?? message.reasoning
  return typeof text === 'string' ? text : undefined
}

function withoutDeveloper(message: ChatMessage): ChatMessage {
  return message.role === 'developer' ? { ...message, role: 'system' } : message
}

/** Replaces an id by a hash, so that both of its places match without stored state. */
function toolIdStep(length: number): Step {
  const fits = new RegExp(`^[a-zA-Z0-9]{${length}}$`)
  const shortened = (id: string): string => {
    if (fits.test(id)) return id
    const digest = createHash('sha256').update(id).digest('hex')
    return BigInt(`0x${digest}`).toString(36).padStart(length, '0').slice(-length)
  }
  return (message) => {
    const { tool_calls: calls, tool_call_id: answered } = message
    if (answered !== undefined && !fits.test(answered)) return { ...message, tool_call_id: shortened(answered) }
    if (!Array.isArray(calls) || calls.every(({ id }) => fits.test(id))) return message
    return { ...message, tool_calls: calls.map((call) => ({ ...call, id: shortened(call.id) })) }
  }
}

function prefillStep(member: string): Step {
  return (message, isLast) => (isLast && message.role === 'assistant' ? { ...message, [member]: true } : message)
}

function withMembers(message: ChatMessage, members: ReadonlySet<string>): ChatMessage {
  for (const name in message) if (!members.has(name)) return onlyMembers(message, members)
  return message
}

function onlyMembers(message: ChatMessage, members: ReadonlySet<string>): ChatMessage {
  return Object.fromEntries(Object.entries(message).filter(([name]) => members.has(name))) as unknown as ChatMessage
}

/** Members that the gateway itself adds to answers. The caller loses nothing if they are dropped. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'thinking_blocks', 'extra_content'])

function lostMembers(messages: readonly ChatMessage[], members: ReadonlySet<string>): readonly string[] {
  const lost = messages.flatMap((message) =>
    Object.entries(message)
      .filter(([name, value]) => !members.has(name) && !OWN_MEMBERS.has(name) && value !== null && value !== undefined)
      .map(([name]) => `messages.${name}`),
  )
  return [...new Set(lost)]
}

/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/** Keywords whose values map names to schemas. */
const SCHEMAS_BY_NAME: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/** Names of types. Other values of `type` stay in place, so that a long one is not repeated. */
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/**
 * Moves `type` into the branches of each `anyOf` in a value with JSON schemas, and removes `$schema`. The result allows at least
 * the same. The value itself is never changed, and is returned if nothing changes. Visits each part once.
 */
export function withTypedBranches(value: unknown): unknown {
  return written(value, false, undefined)
}

/** @param outerType Type of the `anyOf` that the value is a branch of, or `undefined` for other values. */
function written(value: unknown, isByName: boolean, outerType: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => written(item, false, outerType))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isJsonObject(value)) return value
  const { $schema: dialect, type, anyOf } = value
  const movesType = !isByName && Array.isArray(anyOf) && isType(type)
  const branchType = movesType ? type : type === undefined ? outerType : undefined
  let changed: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    if (!isByName && DATA.has(name)) continue
    const isBranches = !isByName && name === 'anyOf' && Array.isArray(member)
    const mapped = written(member, !isByName && SCHEMAS_BY_NAME.has(name), isBranches ? branchType : undefined)
    if (mapped === member) continue
    changed ??= { ...value }
    changed[name] = mapped
  }
  if (isByName) return changed ?? value
  if (typeof dialect === 'string') {
    changed ??= { ...value }
    delete changed['$schema']
  }
  if (movesType) {
    changed ??= { ...value }
    delete changed['type']
  }
  const hasType = ['type', 'anyOf', '$ref'].some((name) => value[name] !== undefined)
  return outerType === undefined || hasType ? (changed ?? value) : { type: outerType, ...(changed ?? value) }
}

function isType(type: unknown): boolean {
  return Array.isArray(type) ? type.length <= TYPES.size && type.every((name) => TYPES.has(name)) : TYPES.has(type)
}
