import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../cached-answers.ts'
import type { ChatOffer } from './chat-operation.ts'
import type { ChatRequest } from './chat-request.ts'
import { pluginExtras, searchParam } from './chat-surcharges.ts'

/** Tools that callers run. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** How chats are answered from the cache. */
export const cachedChats: CachedAnswers<ChatRequest, ChatOffer> = {
  leftOut: new Set([
    ...['stream', 'stream_options', 'user', 'metadata', 'safety_identifier'],
    ...['prompt_cache_key', 'prompt_cache_options', 'session_id'],
  ]),
  form: ({ stream, stream_options: options }) =>
    stream === true ? (options?.include_usage === true ? 'stream with usage' : 'stream') : '',
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    request['store'] === true ||
    hasOtherTier(request) ||
    searchParam(request) !== undefined ||
    pluginExtras(request).length > 0 ||
    hasHostedTool(request.tools, TOOLS_OF_CALLERS) ||
    namesFile(request.messages),
  refusals: ['"content_filter"'],
  idPaths: [['id']],
  costMark: '"cost":"',
}
