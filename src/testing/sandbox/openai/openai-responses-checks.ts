import { createHash } from 'node:crypto'
import { asList, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import { credentialOf, RefusedCall, type SandboxCall } from '../sandbox-operation.ts'
import { openaiInvalid } from './openai-errors.ts'
import { checkEffort, isResponsesOnly } from './openai-models.ts'
import { checkParameters } from './openai-schemas.ts'

/** Fields of chat completions and of routers that Responses does not know, or knows by another name. */
const CHAT_FIELDS = names(
  'messages max_tokens max_completion_tokens n seed stop logit_bias logprobs response_format reasoning_effort verbosity web_search_options modalities audio prediction functions function_call presence_penalty frequency_penalty session_id',
)

/** Items other than messages that may follow reasoning. */
const FOLLOWERS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call', 'web_search_call'])

/** Checks a request for a response (OpenAI API reference, "Create a model response"). */
export function checkResponsesRequest(call: SandboxCall): void {
  const request = asObject(call.body)
  const model = asText(request['model'])
  for (const field of Object.keys(request)) {
    if (!CHAT_FIELDS.has(field)) continue
    throw new RefusedCall(openaiInvalid(`Unknown parameter: '${field}'.`, field, 'unknown_parameter'))
  }
  for (const field of ['temperature', 'top_p']) {
    if (!isGiven(request[field]) || !isResponsesOnly(model)) continue
    const message = `Unsupported parameter: '${field}' is not supported with this model.`
    throw new RefusedCall(openaiInvalid(message, field, 'unsupported_parameter'))
  }
  checkEffort(model, asText(asObject(request['reasoning'])['effort']), 'reasoning.effort')
  asList(request['tools']).forEach((tool, index) => {
    if (asObject(tool)['type'] === 'function') checkParameters(asObject(tool), `tools[${index}].parameters`)
  })
  const choice = asText(asObject(request['tool_choice'])['type'])
  if (choice === 'image_generation' && !asList(request['tools']).some((tool) => asObject(tool)['type'] === choice)) {
    const message = `Tool choice '${choice}' not found in 'tools' parameter.`
    throw new RefusedCall(openaiInvalid(message, 'tool_choice'))
  }
  const input = asList(request['input']).map(asObject)
  checkOutputs(request, input)
  checkReasoning(input, credentialOf(call), model)
}

const SEAL = 'gAAAAA'

/** Returns the content of reasoning, bound to the key's organization, the model, and the item's id if one is sent. */
export function sealedReasoning(id: string, apiKey: string, model: string): string {
  const mac = createHash('sha256').update(`${id} ${apiKey} ${model}`).digest('base64url')
  return `${SEAL}${Buffer.from(id).toString('base64url')}.${mac}`
}

function sealedId(content: string): string {
  return Buffer.from(content.slice(SEAL.length, content.indexOf('.')), 'base64url').toString()
}

/** The stand-in does not store its answers, so only whole conversations can be checked. */
function checkOutputs(request: Fields, input: readonly Fields[]): void {
  if (isGiven(request['previous_response_id'])) return
  const called = new Set<string>()
  for (const item of input) {
    const { type, call_id: id } = item
    if (type === 'function_call') called.add(asText(id))
    if (type !== 'function_call_output' || called.has(asText(id)) || item['id'] !== undefined) continue
    const message = `No tool call found for function call output with call_id ${asText(id)}.`
    throw new RefusedCall(openaiInvalid(message, 'input'))
  }
}

function checkReasoning(input: readonly Fields[], apiKey: string, model: string): void {
  for (const [index, item] of input.entries()) {
    const { type, id, encrypted_content: content, summary } = item
    if (type !== 'reasoning') continue
    const param = `input[${index}].summary`
    if (!isGiven(summary))
      throw new RefusedCall(
        openaiInvalid(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter'),
      )
    if (!Array.isArray(summary)) {
      const message = `Invalid type for '${param}': expected an array of objects, but got ${typeof summary} instead.`
      throw new RefusedCall(openaiInvalid(message, param, 'invalid_type'))
    }
    if (typeof content !== 'string') continue
    const boundTo = isGiven(id) ? asText(id) : sealedId(content)
    if (content !== sealedReasoning(boundTo, apiKey, model)) {
      const message = `The encrypted content for item ${asText(id)} could not be verified.`
      throw new RefusedCall(openaiInvalid(message, null, 'invalid_encrypted_content'))
    }
    const next = input.slice(index + 1).find((other) => other['type'] !== 'reasoning')
    if (next !== undefined && (FOLLOWERS.has(next['type']) || next['role'] === 'assistant')) continue
    const message = `Item '${asText(id)}' of type 'reasoning' was provided without its required following item.`
    throw new RefusedCall(openaiInvalid(message, 'input'))
  }
}
