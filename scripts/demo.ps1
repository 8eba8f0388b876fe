# Demonstration load on Windows: scripts/demo.ps1 60 sends 60 jobs of the four samples and follows them to their end.
# Address and key come from .env; the environment's TURNO_API__KEY and TURNO_WEB__PORT win over it.
param([ValidateRange(1, 20000)][int]$Count = 60)
$ErrorActionPreference = 'Stop'

$settings = @{}
$file = Join-Path (Split-Path $PSScriptRoot) '.env'
if (Test-Path $file) {
    foreach ($line in Get-Content $file -Encoding UTF8) {
        if ($line -match '^\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*$') { $settings[$Matches[1]] = $Matches[2].Trim('"', "'") }
    }
}
foreach ($name in 'TURNO_API__KEY', 'TURNO_WEB__PORT') {
    $value = [Environment]::GetEnvironmentVariable($name)
    if ($value) { $settings[$name] = $value }
}
$port = if ($settings['TURNO_WEB__PORT']) { $settings['TURNO_WEB__PORT'] } else { 8080 }
$address = "http://127.0.0.1:$port"
$headers = @{ 'X-Turno-Key' = "$($settings['TURNO_API__KEY'])" }
$tag = 'demo-' + [guid]::NewGuid().ToString('N').Substring(0, 8)

function New-Payload([int]$Number) {
    $seed = Get-Random -Maximum 9999
    $slow = (Get-Random -Maximum 10) -eq 0
    $duration = if ($slow) { Get-Random -Minimum 4 -Maximum 12 } else { (Get-Random -Minimum 5 -Maximum 80) / 100 }
    $payload = switch ($Number % 4) {
        0 { @{ title = 'Vendas do mes'; rows = 500; group_by = 'region' } }
        1 { @{ name = "pedidos-$seed.txt"; lines = 400; transform = 'upper' } }
        2 { @{ source = 'https://api.example.com/orders'; records = 200; page_size = 50 } }
        3 { @{ recipient = "pessoa$seed@example.com"; channel = 'email'; subject = 'Pedido'; body = "Pedido $seed" } }
    }
    $payload.seed = $seed
    $payload.duration = $duration
    if ((Get-Random -Maximum 12) -eq 0) { $payload.fail = 'error'; $payload.fail_times = 1 }
    $payload
}

$types = 'report.generate', 'file.process', 'integration.sync', 'notification.send'
try {
    for ($first = 0; $first -lt $Count; $first += 500) {
        $last = [Math]::Min($first + 500, $Count) - 1
        $jobs = @(foreach ($number in $first..$last) {
            @{ type = $types[$number % 4]; payload = (New-Payload $number); tags = @($tag); origin = 'demo'; max_attempts = 3 }
        })
        $body = [Text.Encoding]::UTF8.GetBytes((@{ jobs = $jobs } | ConvertTo-Json -Depth 8))
        $null = Invoke-RestMethod "$address/api/jobs/batch" -Method Post -Headers $headers -Body $body -ContentType 'application/json'
    }
    Write-Host "$Count -> $address ($tag)"
    do {
        Start-Sleep -Seconds 1
        $states = @{}
        $query = "tag=$tag&page_size=200"
        do {
            $page = Invoke-RestMethod "$address/api/jobs?$query" -Headers $headers
            foreach ($job in $page.items) { $states[$job.state] = 1 + [int]$states[$job.state] }
            $query = "tag=$tag&page_size=200&cursor=$([uri]::EscapeDataString("$($page.next_cursor)"))"
        } while ($page.next_cursor)
        Write-Host (($states.GetEnumerator() | Sort-Object Name | ForEach-Object { "$($_.Name) $($_.Value)" }) -join ', ')
        $ended = [int]$states['Succeeded'] + [int]$states['Failed'] + [int]$states['Cancelled']
    } while ($ended -lt $Count)
} catch {
    Write-Host "$address : $($_.Exception.Message)"
    exit 1
}
