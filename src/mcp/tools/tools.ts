import type { Tool } from '../tool.ts'
import { editImage, generateImage } from './image-tools.ts'
import { estimateCost, getBalance, listModels } from './lookup-tools.ts'
import { synthesizeSpeech } from './synthesize-speech.ts'
import { chatComplete, createEmbeddings, rerankDocuments } from './text-tools.ts'
import { transcribeAudio } from './transcribe-audio.ts'
import { cancelVideo, getVideoTask, submitVideo, waitForVideo } from './video-tools.ts'

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
  rerankDocuments,
  synthesizeSpeech,
  transcribeAudio,
  listModels,
  estimateCost,
  getBalance,
]
