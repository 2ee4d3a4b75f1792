import type { Tool } from '../tool.ts'
import { cancelVideo } from './cancel-video.ts'
import { chatComplete } from './chat-complete.ts'
import { createEmbeddings } from './create-embeddings.ts'
import { editImage } from './edit-image.ts'
import { estimateCost } from './estimate-cost.ts'
import { generateImage } from './generate-image.ts'
import { getBalance } from './get-balance.ts'
import { getVideoTask } from './get-video-task.ts'
import { listModels } from './list-models.ts'
import { submitVideo } from './submit-video.ts'
import { synthesizeSpeech } from './synthesize-speech.ts'
import { waitForVideo } from './wait-for-video.ts'

/** Every tool of the server, in the order in which clients list them. */
export const TOOLS: readonly Tool[] = [
  chatComplete,
  generateImage,
  editImage,
  submitVideo,
  getVideoTask,
  waitForVideo,
  cancelVideo,
  createEmbeddings,
  synthesizeSpeech,
  listModels,
  estimateCost,
  getBalance,
]
