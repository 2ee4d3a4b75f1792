import { isGiven } from '../../../endpoints/videos/video-request.ts'

/**
 * The seconds that a task record bills (DashScope, task query of video synthesis): `duration`, which holds the seconds of
 * reference videos too; else output and input seconds together; else `video_duration` of older models. Undefined when there
 * is none of them; NaN for a value that is no number, so that it is not taken for silence.
 */
export function billedSeconds(usage: Readonly<Record<string, unknown>>): number | undefined {
  const { duration, output_video_duration: made, input_video_duration: taken, video_duration: older } = usage
  if (isGiven(duration)) return secondsOf(duration)
  if (isGiven(made)) return secondsOf(made) + (isGiven(taken) ? secondsOf(taken) : 0)
  return isGiven(older) ? secondsOf(older) : undefined
}

function secondsOf(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}
