import { ANTHROPIC_COUNT_TOKENS, ANTHROPIC_MESSAGES } from './anthropic/anthropic-messages.ts'
import { DASHSCOPE_CHAT } from './dashscope/dashscope-chat.ts'
import { DASHSCOPE_EMBEDDINGS } from './dashscope/dashscope-embeddings.ts'
import { DASHSCOPE_IMAGES } from './dashscope/dashscope-images.ts'
import { DASHSCOPE_SPEECH } from './dashscope/dashscope-speech.ts'
import { PICTURE_FILES } from './files/picture-files.ts'
import { GEMINI_COUNT_TOKENS } from './gemini/gemini-count-tokens.ts'
import { GEMINI_EMBEDDINGS } from './gemini/gemini-embeddings.ts'
import { GEMINI_GENERATE } from './gemini/gemini-generate.ts'
import { GEMINI_INTERACTIONS } from './gemini/gemini-interactions.ts'
import { OPENAI_CHAT } from './openai/openai-chat.ts'
import { OPENAI_EMBEDDINGS } from './openai/openai-embeddings.ts'
import { OPENAI_IMAGE_EDITS, OPENAI_IMAGES } from './openai/openai-images.ts'
import type { SandboxOperation } from './sandbox-operation.ts'
import { SOUND_FILES } from './sounds/sound-files.ts'
import { VOYAGE_EMBEDDINGS } from './voyage/voyage-embeddings.ts'

/** What the stand-ins can do. The first operation that takes a call answers it, so Voyage stands before OpenAI. */
export const SANDBOX_OPERATIONS: readonly SandboxOperation[] = [
  OPENAI_CHAT,
  VOYAGE_EMBEDDINGS,
  OPENAI_EMBEDDINGS,
  ANTHROPIC_MESSAGES,
  ANTHROPIC_COUNT_TOKENS,
  GEMINI_GENERATE,
  GEMINI_EMBEDDINGS,
  GEMINI_COUNT_TOKENS,
  GEMINI_INTERACTIONS,
  DASHSCOPE_CHAT,
  DASHSCOPE_EMBEDDINGS,
  DASHSCOPE_SPEECH,
  DASHSCOPE_IMAGES,
  OPENAI_IMAGES,
  OPENAI_IMAGE_EDITS,
  PICTURE_FILES,
  SOUND_FILES,
]
