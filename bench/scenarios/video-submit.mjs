import { videoFaults } from '../answer-faults.mjs'
import { videoHold } from '../costs.mjs'
import { videoRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

const MODEL = 'bench-video'

/**
 * Every submission creates a task that stays open until the video is rendered, so their number is bounded: an unlimited run would
 * measure the collection of an unrealistic heap.
 */
export const scenario = cpuScenario({
  name: 'video-submit',
  title: 'video submission, 32 connections',
  per: 'request',
  load: { connections: 32, answersPerConnection: 250 },
  costNanoDollars: videoHold(5),
  isHolding: true,
  target: 2,
  goal: 1.6,
  request: () => videoRequest(MODEL),
  faultsOf: (answer, proxy) => videoFaults(answer, { proxy, model: MODEL }),
})
