import { z } from 'zod'
import { defineTool, LOOKS_UP_AT_VENDOR } from '../tool.ts'
import { taskId } from './arguments.ts'
import { taskRecord, taskRequest, videoLink } from './video-task.ts'

/** `GET /v1/videos/generations/{id}`. */
export const getVideoTask = defineTool({
  name: 'get_video_task',
  title: 'Look at a video task',
  description:
    'Returns the record of a video task: its status and, once it has ended, the address of the video or the error.',
  annotations: LOOKS_UP_AT_VENDOR,
  input: z.object({ task_id: taskId }),
  output: taskRecord,
  async answer({ task_id: id }, { json }) {
    const record = await json(taskRequest(id))
    return { structured: record, content: videoLink(record) }
  },
})
