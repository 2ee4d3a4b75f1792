import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { CompletionRequest } from '../../endpoints/completions/completion-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ResponsesRequest } from '../../endpoints/responses/responses-request.ts'
import type { FieldMapping, FieldRule, FieldRules } from '../shared/field-rules.ts'
import { ROUTING_RULES } from '../shared/openai-field-rules.ts'
import { invalidParameter, unsupportedParameter } from '../shared/parameter-errors.ts'
import type { Preset, PresetDialect, PresetRule, PresetToolChoice } from '../shared/preset.ts'
import { withTypedBranches } from '../shared/typed-branches.ts'
import { messagesMapping } from './preset-messages.ts'

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
