import { type CacheTime, chatCacheTime } from '../cache-marks.ts'
import { inputItems, type ResponsesRequest } from './responses-request.ts'

/** The longest time that the marks of a request for a response ask for. */
export function responsesCacheTime(request: ResponsesRequest): CacheTime {
  const { tools, cache_control } = request
  return chatCacheTime({ messages: inputItems(request), tools, cache_control })
}
