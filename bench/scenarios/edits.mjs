import { imageEditFaults } from '../answer-faults.mjs'
import { EDIT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { imageEditRequest } from '../requests.mjs'

export const scenario = {
  name: 'edits',
  title: 'image edit, 2 MB form in, 2 MB JSON out, 8 connections',
  unit: 'CPU µs/request',
  measurement: load,
  load: { connections: 8 },
  unitsPerAnswer: 1,
  costNanoDollars: EDIT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.5,
  goal: 1.2,
  request: () => imageEditRequest('bench-edit'),
  faultsOf: imageEditFaults,
}
