import type {
  ChatMessage as UnmarkedMessage,
  ChatContentPart as UnmarkedPart,
  ChatTool as UnmarkedTool,
} from '../endpoints/chat/chat-request.ts'
import type { CacheMarks } from './cache-marks.ts'

/** Part of a message's content. Unknown types are passed to vendors of the same dialect. */
export type ChatContentPart = UnmarkedPart & CacheMarks

/** One message of a chat. */
export interface ChatMessage extends Omit<UnmarkedMessage, 'content'> {
  content?: string | ChatContentPart[] | null
}

/** Function that the model may call; `parameters` is a JSON Schema. */
export interface ChatTool extends UnmarkedTool, CacheMarks {}
