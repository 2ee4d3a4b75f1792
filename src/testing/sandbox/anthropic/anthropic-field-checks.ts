import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { refuseAnthropic } from './anthropic-errors.ts'
import { type AnthropicModelRules, anthropicModelRules } from './anthropic-model-rules.ts'

type Json = Readonly<Record<string, unknown>>

const FIELDS = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'stream',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
  'service_tier',
  'speed',
  'cache_control',
  'container',
  'inference_geo',
  'diagnostics',
])
const MIN_THINKING_BUDGET = 1024

/** What of the headers decides which fields are accepted. */
export interface AnthropicRevision {
  /** `anthropic-version`. */
  readonly version: string
  /** True when `anthropic-beta` names any feature; their fields are then not checked. */
  readonly hasBeta: boolean
}

/** The checks of everything but messages. */
export function checkAnthropicFields(request: Json, revision: AnthropicRevision): void {
  for (const field of Object.keys(request)) {
    if (!FIELDS.has(field) && !revision.hasBeta) refuseAnthropic(`${field}: Extra inputs are not permitted`)
  }
  const model = asText(request['model'])
  const rules = anthropicModelRules(model)
  const maxTokens = asNumber(request['max_tokens']) ?? 0
  if (maxTokens > rules.maxOutputTokens) {
    refuseAnthropic(
      `max_tokens: ${maxTokens} > ${rules.maxOutputTokens}, which is the maximum allowed number of output tokens for ${model}`,
    )
  }
  checkSampling(request, rules, revision.version)
  checkThinking(request, rules)
  checkTools(request, rules)
  asList(request['stop_sequences']).forEach((sequence, position) => {
    if (asText(sequence).trim() === '')
      refuseAnthropic(`stop_sequences.${position}: each stop sequence must contain non-whitespace`)
  })
  checkOutputFormat(asObject(asObject(request['output_config'])['format']))
}

function checkSampling(request: Json, rules: AnthropicModelRules, version: string): void {
  const given = ['temperature', 'top_p', 'top_k'].filter((field) => isGiven(request[field]))
  const [first] = given
  if (first === undefined) return
  if (version === '2026-10-21' || rules.sampling === 'none')
    refuseAnthropic(`${first}: this parameter is not supported`)
  for (const field of ['temperature', 'top_p']) {
    const value = request[field]
    if (!isGiven(value)) continue
    if (typeof value !== 'number') refuseAnthropic(`${field}: Input should be a valid number`)
    if (Number(value) < 0 || Number(value) > 1) refuseAnthropic(`${field}: range: 0..1`)
  }
  if (rules.sampling === 'one') {
    if (given.includes('temperature') && given.includes('top_p')) {
      refuseAnthropic('`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
    }
    return
  }
  const { temperature, top_p: topP, top_k: topK } = request
  if (isGiven(temperature) && temperature !== 1) refuseAnthropic('`temperature` may only be set to 1 for this model')
  if (isGiven(topP) && Number(topP) < 0.99) refuseAnthropic('`top_p` may only be set to 0.99 or above for this model')
  if (isGiven(topK)) refuseAnthropic('`top_k` is not supported for this model')
}

function checkThinking(request: Json, rules: AnthropicModelRules): void {
  const thinking = asObject(request['thinking'])
  const type = asText(thinking['type'])
  if (!isGiven(request['thinking'])) return
  if (!rules.thinking.includes(type)) {
    const expected = rules.thinking.map((value) => `'${value}'`).join(', ')
    refuseAnthropic(
      `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  if (type !== 'enabled') return
  const budget = asNumber(thinking['budget_tokens'])
  if (budget === undefined) refuseAnthropic('thinking.enabled.budget_tokens: Field required')
  if (budget < MIN_THINKING_BUDGET) {
    refuseAnthropic(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_THINKING_BUDGET}`)
  }
  if (budget >= (asNumber(request['max_tokens']) ?? Number.POSITIVE_INFINITY)) {
    refuseAnthropic('`max_tokens` must be greater than `thinking.budget_tokens`.')
  }
  if (isGiven(request['temperature']) && request['temperature'] !== 1) {
    refuseAnthropic('`temperature` may only be set to 1 when thinking is enabled.')
  }
}

function checkTools(request: Json, rules: AnthropicModelRules): void {
  asList(request['tools'])
    .map(asObject)
    .forEach((tool, position) => {
      const isServerTool = isGiven(tool['type']) && tool['type'] !== 'custom'
      if (isServerTool) return
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(asText(tool['name']))) {
        refuseAnthropic(`tools.${position}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
      }
      const type = asObject(tool['input_schema'])['type']
      if (type === undefined) refuseAnthropic(`tools.${position}.custom.input_schema.type: Field required`)
      if (type !== 'object') refuseAnthropic(`tools.${position}.custom.input_schema.type: Input should be 'object'`)
    })
  const choice = asText(asObject(request['tool_choice'])['type'])
  if (choice !== '' && !['auto', 'any', 'tool', 'none'].includes(choice)) {
    refuseAnthropic(
      `tool_choice: Input tag '${choice}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'`,
    )
  }
  if (choice !== '' && asList(request['tools']).length === 0) {
    refuseAnthropic('tool_choice: tool_choice may only be specified while providing tools')
  }
  if (choice !== 'any' && choice !== 'tool') return
  if (asObject(request['thinking'])['type'] === 'enabled') {
    refuseAnthropic('Thinking may not be enabled when tool_choice forces tool use.')
  }
  if (!rules.takesForcedToolChoice) refuseAnthropic('tool_choice: forcing tool use is not supported for this model')
}

// Limits that structured output does not know, by schema type.
const UNSUPPORTED = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
]

function checkOutputFormat(format: Json): void {
  if (format['type'] === undefined) return
  if (format['type'] !== 'json_schema') refuseAnthropic("output_config.format.type: Input should be 'json_schema'")
  checkOutputSchema(format['schema'])
}

function checkOutputSchema(schema: unknown): void {
  if (Array.isArray(schema)) {
    for (const entry of schema) checkOutputSchema(entry)
    return
  }
  if (!isGiven(schema)) return
  const object = asObject(schema)
  if (object['type'] === 'object' && object['additionalProperties'] !== false) {
    refuseAnthropic(
      "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    )
  }
  const limit = typeof object['type'] === 'string' ? UNSUPPORTED.find((keyword) => keyword in object) : undefined
  if (limit !== undefined) {
    refuseAnthropic(
      `output_config.format.schema: For '${asText(object['type'])}' type, property '${limit}' is not supported`,
    )
  }
  for (const entry of Object.values(asObject(object['properties']))) checkOutputSchema(entry)
  for (const entry of Object.values(asObject(object['$defs']))) checkOutputSchema(entry)
  checkOutputSchema(object['items'])
  checkOutputSchema(object['anyOf'])
}
