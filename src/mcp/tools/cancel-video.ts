import { z } from 'zod'
import { defineTool } from '../tool.ts'
import { taskId } from './arguments.ts'
import { taskRecord, taskRequest } from './video-task.ts'

/** `POST /v1/videos/generations/{id}/cancel`. */
export const cancelVideo = defineTool({
  name: 'cancel_video',
  title: 'Cancel a video',
  description:
    'Cancels a video task that has not begun to run, and frees its money. One that runs cannot be cancelled.',
  // What is cancelled cannot be taken up again; cancelling twice changes nothing more.
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  input: z.object({ task_id: taskId }),
  output: taskRecord,
  async answer({ task_id: id }, { json }) {
    return { structured: await json(taskRequest(id, 'cancel')) }
  },
})
