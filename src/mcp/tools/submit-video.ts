import { z } from 'zod'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model } from './arguments.ts'
import { taskRecord, VIDEOS_PATH } from './video-task.ts'

const members = z.record(z.string(), z.unknown())

/** `POST /v1/videos/generations`. */
export const submitVideo = defineTool({
  name: 'submit_video',
  title: 'Start a video',
  description:
    'Starts a video and returns the id of its task at once; wait_for_video waits for the result. Charged by the second. ' +
    'The fields of input and parameters depend on the model, see gateway://reference/videos.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    duration: z.int().min(1).optional().describe('Seconds. Default 5.'),
    resolution: z.string().optional().describe('480p, 720p (default) or 1080p, as the model has them.'),
    aspect_ratio: z.string().optional().describe('Such as 16:9.'),
    input: members.describe('What to show: prompt, and pictures or videos by their URLs.'),
    parameters: members.optional().describe('Further settings, passed to the vendor as they are.'),
    webhook_url: z.string().optional().describe('Called when the task has ended.'),
    idempotency_key: idempotencyKey,
  }),
  output: taskRecord,
  async answer({ idempotency_key: key, ...body }, { json }) {
    return { structured: await json({ method: 'POST', path: VIDEOS_PATH, body, idempotencyKey: key }) }
  },
})
