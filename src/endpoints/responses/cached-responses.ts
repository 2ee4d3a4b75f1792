import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../cached-answers.ts'
import { pluginExtras } from '../chat/chat-surcharges.ts'
import type { ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'

/** Tools that callers run. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** How Responses are answered from the cache: those that nobody can continue by their id. */
export const cachedResponses: CachedAnswers<ResponsesRequest, ResponsesOffer> = {
  // An answer repeats `user`, `metadata` and their like, so they decide it.
  leftOut: new Set(['stream', 'stream_options']),
  form: ({ stream }) => (stream === true ? 'stream' : ''),
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    request.store !== false ||
    request.background === true ||
    isGiven(request.previous_response_id) ||
    isGiven(request.conversation) ||
    isGiven(request['prompt']) ||
    hasOtherTier(request) ||
    hasHostedTool(request.tools, TOOLS_OF_CALLERS) ||
    pluginExtras(request).length > 0 ||
    namesFile(request.input) ||
    refersToItems(request.input),
  // Only the credential that made encrypted reasoning can read it, and who gives it again does not know which that was.
  refusals: ['"content_filter"', '"refusal"', '"encrypted_content"'],
  idPaths: [['id'], ['response', 'id']],
}

/** Does an item stand elsewhere, or bring tools along? */
function refersToItems(input: ResponsesRequest['input']): boolean {
  return Array.isArray(input) && input.some((item) => item.type === 'item_reference' || item['tools'] !== undefined)
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
