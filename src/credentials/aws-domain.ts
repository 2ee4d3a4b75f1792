/** The domain of AWS's services in a region: that of its partition (AWS, "Partitions"). */
export function awsDomain(region: string): string {
  if (region.startsWith('cn-')) return 'amazonaws.com.cn'
  return region.startsWith('eusc-') ? 'amazonaws.eu' : 'amazonaws.com'
}
