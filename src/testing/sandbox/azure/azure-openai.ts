import { azureOperation, checkEffort, refuseOpenai } from '../openai/openai.ts'
import { answerResponses, responsesPromptText } from '../openai/openai-responses.ts'
import { COMPATIBLE_DIALECT, chatOperation } from '../openai-dialect/chat.ts'
import { asText } from '../request-fields.ts'
import { eventText, jsonReply, RefusedCall, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'

const SAFE = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } }

/**
 * Azure OpenAI: chat at the v1 path and at the dated one, with the results of an asynchronous content filter in its streams. A
 * blocked prompt gets 400 `content_filter`.
 */
const AZURE_OPENAI_CHAT = chatOperation(azureOperation, {
  post: /^\/openai\/(?:v1|deployments\/([^/]+))\/chat\/completions$/,
  headers: ['apim-request-id', 'sandbox-azure'],
  refuse: refuseOpenai,
  dialect: {
    ...COMPATIBLE_DIALECT,
    answerModel: (deployment) => `${deployment}-2024-08-06`,
    showsReasoning: false,
    hasOfficialExtras: true,
    usageDetails: ({ cached, reasoning }) => ({
      prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
    }),
  },
  prepare(request, call, [deployment]) {
    if (deployment === undefined) return request
    if (!new URLSearchParams(call.query).has('api-version'))
      throw new RefusedCall(jsonReply(404, [], { error: { code: '404', message: 'Resource not found' } }))
    return { ...request, model: decodeURIComponent(deployment) }
  },
  check(request, _call, { blocked }) {
    if (blocked) throw new RefusedCall(filteredPrompt())
    checkEffort(asText(request['model']), asText(request['reasoning_effort']), 'reasoning_effort')
  },
  edit: filtered,
})

function filteredPrompt(): SandboxReply {
  const innererror = { code: 'ResponsibleAIPolicyViolation', content_filter_result: SAFE }
  const message = 'The response was filtered due to the prompt triggering the content management policy.'
  return jsonReply(400, [], {
    error: { message, type: null, param: 'prompt', code: 'content_filter', status: 400, innererror },
  })
}

/** Adds the results of the filter: for the prompt in the first event, for the text after it, even after its end. */
function filtered(reply: SandboxReply): SandboxReply {
  if (!reply.streamed) return reply
  const head = { id: '', object: '', created: 0, model: '' }
  const prompt = { ...head, choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }] }
  const verdict = { index: 0, finish_reason: null, content_filter_results: SAFE, content_filter_offsets: {} }
  const behind = eventText({ ...head, choices: [verdict], usage: null })
  const [first = '', second = '', ...rest] = reply.pieces
  const tail = rest.splice(-2)
  return { ...reply, pieces: [eventText({ ...prompt, usage: null }), first, second, behind, ...rest, behind, ...tail] }
}

/** Azure OpenAI: `/responses` at a resource, by the v1 path and dated ones (Azure OpenAI, "Use the Responses API"). */
const AZURE_OPENAI_RESPONSES = azureOperation({
  operation: 'responses',
  post: /^\/openai(?:\/v1)?\/responses$/,
  prompt: responsesPromptText,
  answer: answerResponses,
})

/** Operations of Azure OpenAI. */
export const AZURE_OPERATIONS: readonly SandboxOperation[] = [AZURE_OPENAI_CHAT, AZURE_OPENAI_RESPONSES]
